import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import Testing

@testable import BlobUpload

/// Tests which URL has the bytes of a finished tus upload, for a later check and for reading back.
@Suite struct TusFileTests {
  private let upload = "http://media.example/files/1"
  private static let complete: HTTPHeaders = ["Upload-Offset": "1000", "Upload-Length": "1000"]

  /// A server's responses for the name (HEAD), for the upload's URL as a file (GET), and for the upload (HEAD).
  struct Server: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let name: HTTPResponse
    var file = HTTPResponse.status(204)
    var upload = HTTPResponse.status(404)
    let isThere: Bool
    var requests: Int
  }

  @Test(arguments: [
    Server(
      testDescription: "the file is there", name: .status(200, ["Content-Length": "1000"]), isThere: true, requests: 1),
    Server(
      testDescription: "the file is gone, and the upload says where it was", name: .status(404),
      upload: .status(200, Self.at("/in/a.mov")), isThere: false, requests: 3),
    Server(
      testDescription: "the file is shorter", name: .status(200, ["Content-Length": "999"]),
      upload: .status(200, Self.at("/in/a.mov")), isThere: false, requests: 3),
    Server(
      testDescription: "the file has another name, and is gone from there", name: .status(404),
      upload: .status(200, Self.at("/in/other")), isThere: false, requests: 4),
    Server(
      testDescription: "the upload's URL gives the bytes", name: .status(404),
      file: .status(206, ["Content-Range": "bytes 0-0/1000"]), isThere: true, requests: 2),
    Server(
      testDescription: "the upload's URL gives fewer bytes", name: .status(404),
      file: .status(206, ["Content-Range": "bytes 0-0/999"]), isThere: false, requests: 2),
    Server(
      testDescription: "the upload is gone", name: .status(404), file: .status(404), isThere: false, requests: 2),
    Server(
      testDescription: "nobody can look, and the upload is complete", name: .status(404), file: .status(405),
      upload: .status(200, Self.complete), isThere: true, requests: 3),
    Server(
      testDescription: "another file has the name, and nobody can look further",
      name: .status(200, ["Content-Length": "670"]), file: .status(405), upload: .status(200, Self.complete),
      isThere: false, requests: 3),
  ])
  func theFileIsAskedForAndNotItsUpload(_ server: Server) async throws {
    let script = Script { _, request throws(TransportError) in
      if request.url.path == "/in/a.mov" { return server.name }
      if request.url.path != "/files/1" { return .status(404) }
      return request.method == "HEAD" ? server.upload : server.file
    }
    let one = uploader(Tus(), script)
    let target = one.destination.target("a.mov", length: 1000)
    #expect(try await one.isThere(target, location: upload) == server.isThere)
    #expect(script.requests.count == server.requests)
  }

  private static func at(_ place: String) -> HTTPHeaders {
    var headers = complete
    headers["Content-Location"] = place
    return headers
  }

  /// Once a host has returned an upload as a file, later files are queried at their uploads' URLs first.
  @Test func aHostThatGivesOutUploadsIsAskedForThemAtOnce() async throws {
    let script = Script { _, request throws(TransportError) in
      request.url.path == "/files/1" ? .status(206, ["Content-Range": "bytes 0-0/1000"]) : .status(404)
    }
    let one = uploader(Tus(), script)
    let target = one.destination.target("a.mov", length: 1000)
    for _ in 0..<3 { #expect(try await one.isThere(target, location: upload)) }
    #expect(script.methods == ["HEAD", "GET", "GET", "GET"])
  }

  /// The server reports the upload as finished until it expires, even if the file no longer exists.
  @Test(arguments: [0, 1000, 3_000_000] as [Int64]) func aFileThatOurServerLostIsMissed(_ length: Int64) async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let destination = try await UploadDestination.discover(peer.endpoint, named: "tus", over: SocketTransport())
    let uploader = Uploader(destination, transport: SocketTransport(), retry: RetryPolicy(first: .zero))
    let source = PatternSource(length: length)
    let result = try #require(try await uploader.upload(source, as: "a.mov"))
    let target = destination.target("a.mov", length: length)
    #expect(try await uploader.isThere(target, location: result.location))
    let path = "\(peer.folder)/a.mov"
    #expect(rename(path, path + ".gone") == 0)
    #expect(try await !uploader.isThere(target, location: result.location))
  }

  /// Like tusd, which does not store files by name.
  @Test(arguments: [false, true]) func aFileIsReadBackFromTheURLOfItsUpload(_ isChanged: Bool) async throws {
    let source = PatternSource(length: 100_000)
    var bytes = source.bytes(count: 100_000)
    if isChanged { bytes[70_000] ^= 1 }
    let peer = HTTPPeer { [bytes] request in
      switch (request.method, request.path) {
      case ("POST", _): .init(201, ["Location": "/up/1", "Upload-Offset": "100000"])
      case ("GET", "/up/1") where request.headers["Range"] != nil:
        .init(206, ["Content-Range": "bytes 0-0/\(bytes.count)"], [bytes[0]])
      case ("GET", "/up/1"): .init(200, [:], bytes)
      default: .init(200, [:], Array("a page for every name".utf8))
      }
    }
    defer { peer.stop() }
    let desk = try await Desk()
    var queue = desk.queue(SocketTransport(), Tus())
    queue.uploader.destination = UploadDestination(
      endpoint: peer.url, uploadProtocol: Tus(), limits: PartLimits(firstPart: 4 << 20))
    queue.verify = true
    let outcomes = try await desk.run(queue, ["a", "b"], length: 100_000)
    if isChanged {
      #expect(outcomes.error("a")?.message.contains("what the server has differs") == true)
    } else {
      #expect(outcomes.sent == 2, "\(outcomes["a"] as Any)")
      #expect(peer.requests.count { $0 == "GET /up/1" } <= 4, "a host is asked once or twice whether it gives them out")
    }
  }

  /// tusd aborts a request with bytes when another request asks for the same upload.
  @Test(arguments: ["ERR_UPLOAD_INTERRUPTED: upload has been interrupted by another request for this upload resource"])
  func aRequestThatWasInterruptedGoesOn(_ text: String) async {
    let script = Script(.created, .status(400, text: text), .at(400, of: 1000), .at(1000))
    #expect(await uploader(Tus(), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "HEAD", "PATCH"])
    let other = Script(.created, .status(400, text: "no"))
    #expect(await uploader(Tus(), other).failure()?.status == 400)
  }
}
