import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// A tus server concatenates parts in place: the first part's upload grows and becomes the whole upload.
@Suite struct JoinedInPlaceTests {
  @Test func theUploadThatIsTheFileIsNotDeleted() async throws {
    let uploads = Monitor<[String: [UInt8]]>([:])
    let peer = HTTPPeer { request in uploads.update { Self.answer(request, &$0) } }
    defer { peer.stop() }
    var uploader = Uploader(
      UploadDestination(endpoint: peer.url, uploadProtocol: Tus(), limits: PartLimits(isParallel: true)),
      transport: SocketTransport(), retry: RetryPolicy(retries: 2))
    (uploader.splitting.leastLength, uploader.splitting.smallestPart, uploader.partsAtOnce) = (1000, 400, 2)
    let source = PatternSource(length: 1000)
    let result = try await uploader.upload(source, source.info, to: uploader.destination.target("a", length: 1000))
    #expect(result.location == peer.url.resolve("/up/0")?.text)
    #expect(uploads.update { $0 } == ["/up/0": source.bytes(count: 1000)], "\(peer.requests)")
    #expect(peer.requests.count { $0.hasPrefix("DELETE") } == 2, "the other parts are deleted")
  }

  private static func answer(_ request: HTTPPeer.Request, _ uploads: inout [String: [UInt8]]) -> HTTPPeer.Reply {
    let tus: HTTPHeaders = ["Tus-Resumable": "1.0.0"]
    func reply(_ status: Int, _ name: String, _ value: String) -> HTTPPeer.Reply {
      var headers = tus
      headers[name] = value
      return .init(status, headers)
    }
    switch request.method {
    case "POST":
      guard let concat = request.headers["Upload-Concat"], concat.hasPrefix("final;") else {
        let place = "/up/\(uploads.count)"
        uploads[place] = []
        return reply(201, "Location", place)
      }
      let places = concat.dropFirst(6).split(separator: " ").map(String.init)
      uploads[places[0]] = places.flatMap { uploads[$0] ?? [] }
      return reply(201, "Location", places[0])
    case "PATCH": uploads[request.path]? += request.body
    case "DELETE":
      uploads[request.path] = nil
      return .init(204, tus)
    default: break
    }
    guard let bytes = uploads[request.path] else { return .init(404, tus) }
    return reply(request.method == "HEAD" ? 200 : 204, "Upload-Offset", String(bytes.count))
  }
}
