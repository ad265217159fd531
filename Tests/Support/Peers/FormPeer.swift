import BlobTesting
import BlobHTTP
import Blobs
import Platform

/// A server that accepts forms, publishes the file under its own name, and refuses malformed requests. RFC 7578.
public final class FormPeer: ProtocolPeer {
  /// A part as received.
  public struct Part: Sendable {
    public var name: String
    public var fileName: [UInt8]?
    public var contentType: String?
    public var bytes: [UInt8]
  }

  private let files: PublishedNames
  private let taken: Monitor<[[Part]]>
  private let peer: HTTPPeer

  public init() {
    let files = PublishedNames()
    let taken = Monitor<[[Part]]>([])
    (self.files, self.taken) = (files, taken)
    peer = HTTPPeer { request in
      guard request.method == "POST" else { return .init(405) }
      guard let parts = Self.parts(of: request), let file = parts.last(where: { $0.fileName != nil }) else {
        return .init(400)
      }
      taken.update { $0.append(parts) }
      let name = BytePath(file.fileName!)
      let overwrites = request.headers["If-Match"] == "*"
      if overwrites, files[name] == nil { return .init(412) }
      return switch files.publish(file.bytes, as: name, overwrites: overwrites) {
      case .new, .replaced: .init(201, [:], Array(#"{"files": [{"size": \#(file.bytes.count)}]}"#.utf8))
      case .same: .init(200)
      case .taken: .init(409)
      }
    }
  }

  /// The well-formed forms, in the order of arrival.
  public var forms: [[Part]] { taken.update(waking: .none) { $0 } }

  public var endpoint: HTTPURL { peer.url }
  public func contents(of name: BytePath) -> [UInt8]? { files[name] }
  public func names() -> [BytePath] { files.all }
  public func unfinished() -> Int64 { peer.arriving }
  public func restart() { peer.cutAll() }
  public func stop() { peer.stop() }

  // MARK: Parsing without regard to speed

  private static func parts(of request: HTTPPeer.Request) -> [Part]? {
    let type = request.headers["Content-Type"] ?? ""
    guard type.hasPrefix("multipart/form-data; boundary=") else { return nil }
    let boundary = Array("\r\n--\(type.dropFirst(30))".utf8)
    // No line break precedes the first delimiter.
    var rest = (Array("\r\n".utf8) + request.body)[...]
    guard rest.starts(with: boundary) else { return nil }
    var parts: [Part] = []
    while true {
      rest = rest.dropFirst(boundary.count)
      if rest.elementsEqual("--\r\n".utf8) { return parts }
      guard rest.starts(with: "\r\n".utf8), let end = find(boundary, in: rest),
        let part = part(rest[..<end].dropFirst(2))
      else { return nil }
      parts.append(part)
      rest = rest[end...]
    }
  }

  private static func part(_ bytes: ArraySlice<UInt8>) -> Part? {
    guard let end = find(Array("\r\n\r\n".utf8), in: bytes) else { return nil }
    var part = Part(name: "", bytes: Array(bytes[(end + 4)...]))
    for line in bytes[..<end].split(separator: UInt8(ascii: "\n")) {
      let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
      let disposition = Array("Content-Disposition: form-data; name=\"".utf8)
      if line.starts(with: disposition) {
        let rest = line.dropFirst(disposition.count)
        let name = rest.prefix { $0 != UInt8(ascii: "\"") }
        part.name = String(decoding: name, as: UTF8.self)
        let fileName = Array("\"; filename=\"".utf8)
        let more = rest.dropFirst(name.count)
        if more.starts(with: fileName), more.last == UInt8(ascii: "\"") {
          part.fileName = percentDecoded(more.dropFirst(fileName.count).dropLast())
        } else if !more.elementsEqual("\"".utf8) {
          return nil
        }
      } else if line.starts(with: "Content-Type: ".utf8) {
        part.contentType = String(decoding: line.dropFirst(14), as: UTF8.self)
      }
    }
    return part.name.isEmpty ? nil : part
  }

  private static func find(_ wanted: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    bytes.withUnsafeBytes { raw -> Int? in
      var place = 0
      // Searches the first byte with memchr, which is fast in debug builds too.
      while raw.count - place >= wanted.count,
        let found = memchr(raw.baseAddress! + place, Int32(wanted[0]), raw.count - place - wanted.count + 1)
      {
        place = UnsafeRawPointer(found) - raw.baseAddress!
        if memcmp(found, wanted, wanted.count) == 0 { return bytes.startIndex + place }
        place += 1
      }
      return nil
    }
  }
}
