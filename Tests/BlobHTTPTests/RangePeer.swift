import BlobHTTP
import BlobTesting
import Blobs

/// A server with one file, which may be replaced.
final class RangePeer: Sendable {
  struct File: Sendable {
    var bytes: [UInt8]
    /// `ETag` and similar fields.
    var headers: HTTPHeaders = ["ETag": "\"1\""]
    /// Whether the server honors `Range`.
    var givesRanges = true
  }

  private let file: Monitor<File>
  private let heads: Monitor<[HTTPHeaders]>
  let peer: HTTPPeer

  /// `instead` may replace the response; its argument is the number of the request, counted from 0.
  init(_ file: File, instead: @escaping @Sendable (Int, HTTPPeer.Request) -> HTTPPeer.Reply? = { _, _ in nil }) {
    let (file, heads) = (Monitor(file), Monitor<[HTTPHeaders]>([]))
    (self.file, self.heads) = (file, heads)
    peer = HTTPPeer { request in
      let number = heads.update { heads in
        heads.append(request.headers)
        return heads.count - 1
      }
      return instead(number, request) ?? Self.answer(request, file.update { $0 })
    }
  }

  deinit { peer.stop() }

  var url: HTTPURL { peer.url.appending(pathBytes: "films/a.mov".utf8) }
  /// The header fields of all requests so far.
  var seen: [HTTPHeaders] { heads.update { $0 } }
  func replace(by other: File) { file.update { $0 = other } }

  private static func answer(_ request: HTTPPeer.Request, _ file: File) -> HTTPPeer.Reply {
    let length = file.bytes.count
    var headers = file.headers
    if let date = request.headers["If-Unmodified-Since"], date != headers["Last-Modified"] { return .init(412) }
    let condition = request.headers["If-Range"]
    let isSame = condition == nil || condition == headers["ETag"] || condition == headers["Last-Modified"]
    guard file.givesRanges, isSame, let range = request.headers["Range"] else { return .init(200, headers, file.bytes) }
    let ends = range.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    guard let first = ends[0], first < length else { return .init(416, ["Content-Range": "bytes */\(length)"]) }
    let last = min(ends[1] ?? length - 1, length - 1)
    headers["Content-Range"] = "bytes \(first)-\(last)/\(length)"
    return .init(206, headers, Array(file.bytes[first...last]))
  }
}
