import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// The server is still processing bytes whose response was lost, and responds 403 to the bytes that follow, like
/// `resumable-upload` on PyPI.
@Suite struct RefusedBytesTests {
  /// The connection breaks during the first PATCH, the second gets 403, and from then on the server has `held` of 1000
  /// bytes.
  private func script(_ name: String, holding held: Int64) -> Script {
    Script { number, request throws(TransportError) in
      switch (number, request.method) {
      case (1, "PATCH"): throw TransportError(.broken, "the connection broke")
      case (3, "PATCH"): return .status(403, text: "Upload already completed")
      case (2, "HEAD"): return .holding(0, of: 1000, name)
      case (_, "HEAD"): return .holding(held, of: 1000, name)
      case (_, "POST"): return .emptyCreation(name)
      case (_, "DELETE"): return .status(204)
      default: return .holding(1000, of: 1000, name)
      }
    }
  }

  private func uploadProtocol(_ name: String) -> any UploadProtocol {
    name == "tus" ? Tus(wholeUpTo: 0) : IETFResumable()
  }

  /// Only the new upload can show that the server does not refuse the file.
  @Test(arguments: ["tus", "resumable"]) func anUploadThatIsWholeMeanwhileIsSentOnceMore(_ name: String) async {
    let script = script(name, holding: 1000)
    #expect(await uploader(uploadProtocol(name), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "DELETE", "POST", "PATCH"])
  }

  @Test(arguments: ["tus", "resumable"]) func anUploadThatGrewMeanwhileGoesOn(_ name: String) async {
    let script = script(name, holding: 600)
    #expect(await uploader(uploadProtocol(name), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "HEAD", "PATCH"])
    #expect(script.requests.last?.headers["Upload-Offset"] == "600")
  }

  /// The server may refuse the concatenation that follows, but not the part.
  @Test func aPartThatIsWholeMeanwhileIsThere() async {
    let script = script("tus", holding: 1000)
    #expect(await uploader(TusConcatenation(tus: Tus(wholeUpTo: 0)).ofParts, script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD"])
  }

  @Test func partsAtOnceArriveWhoseAnswersAreLost() async throws {
    let peer = try ServedFolder()
    defer { peer.stop() }
    let slow = AnsweringLate()
    let destination = try await UploadDestination.discover(peer.endpoint, named: "tus", over: SocketTransport())
    var uploader = Uploader(
      destination, transport: slow, retry: RetryPolicy(retries: 2, first: .milliseconds(1)))
    uploader.partsAtOnce = 3
    let pattern = PatternSource(length: 17 << 20, seed: 3)
    _ = try await uploader.upload(pattern, as: "video")
    #expect(peer.contents(of: "video") == pattern.bytes(count: 17 << 20))
    #expect(peer.unfinished() == 0)
    #expect(slow.refused > 1 && slow.overridden == 0)
  }
}

/// Forwards the first PATCH of each upload and loses the response. It shows the new offset only after the client has
/// sent more bytes, which are refused.
private final class AnsweringLate: Transport {
  private enum Stage { case lost, refused }
  private struct State {
    var stages: [HTTPURL: Stage] = [:]
    var refused = 0
    var overridden = 0
  }
  private let transport = SocketTransport(.init(connections: 8))
  private let state = Mutex(State())

  var refused: Int { state.withLock { $0.refused } }
  var overridden: Int { state.withLock { $0.overridden } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    if request.isOverridden { state.withLock { $0.overridden += 1 } }
    let stage = state.withLock { $0.stages[request.url] }
    switch (request.method, stage) {
    case ("PATCH", nil):
      _ = try await transport.send(request, body: body, on)
      state.withLock { $0.stages[request.url] = .lost }
      throw TransportError(.broken, "the connection broke")
    case ("HEAD", .lost):
      var response = try await transport.send(request, body: body, on)
      response.head.headers["Upload-Offset"] = "0"
      return response
    case ("PATCH", .lost):
      state.withLock { state in
        state.stages[request.url] = .refused
        state.refused += 1
      }
      on.sent(Int(body?.length ?? 0))
      return .status(403, text: "Upload already completed")
    default: return try await transport.send(request, body: body, on)
    }
  }
}
