import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import BlobUpload
import Blobs
import Testing

/// Tests which responses to PUT say that the file is stored. RFC 9110 §9.3.4, §15.3.
@Suite struct StoredStatusTests {
  private func put(_ status: Int, _ body: [UInt8] = []) async throws -> UploadResult {
    // The server lets nobody read the stored file.
    let peer = HTTPPeer { $0.method == "PUT" ? .init(status, [:], body) : .init(403) }
    defer { peer.stop() }
    var uploader = Uploader(
      UploadDestination(endpoint: peer.url, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max)),
      transport: SocketTransport(), retry: RetryPolicy(retries: 1))
    uploader.clock = LeapingClock()
    let result = try await uploader.upload(PatternSource(length: 1000), as: "a")
    return try #require(result)
  }

  @Test(arguments: [200, 201, 204]) func someSuccessesSayThatItIsStored(_ status: Int) async throws {
    #expect(try await put(status).location?.hasSuffix("/a") == true)
  }

  @Test(arguments: [202, 203, 205, 206, 207, 208, 226, 299]) func otherSuccessesDoNotSayIt(_ status: Int) async throws {
    let error = await #expect(throws: UploadError.self) { try await put(status) }
    #expect(error?.status == status && error?.recovery == .giveUp)
    #expect(error?.message.contains("\(status)") == true, "\(error.map(String.init(describing:)) ?? "")")
    #expect(error?.message.contains("does not say that the file is stored") == true, "\(error?.message ?? "")")
  }

  /// WebDAV with a pipe: an incomplete file must not be moved to its name.
  @Test func aShortFileOfAPipeIsNotPublished() async throws {
    func answer(_ status: Int) -> ScriptedPeer.Step {
      .send("HTTP/1.1 \(status) Early\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }
    // The name is free.
    let peer = ScriptedPeer([.readHead, answer(404), .close], [.readHead, answer(201), .hold])
    let endpoint = HTTPURL("http://127.0.0.1:\(peer.port)/")!
    var uploader = Uploader(
      UploadDestination(
        endpoint: endpoint, uploadProtocol: WebDAV(), limits: PartLimits(smallest: .max, firstPart: 4 << 20)),
      transport: SocketTransport(), retry: RetryPolicy(retries: 1))
    uploader.clock = LeapingClock()
    let source = PatternSource(length: 64 << 20, access: .sequential, knowsLength: false)
    await #expect(throws: UploadError.self) { try await uploader.upload(source, as: "a") }
    let methods = peer.seen.heads.map { $0.prefix { $0 != " " } }
    #expect(methods.contains("PUT") && !methods.contains("MOVE"), "\(methods)")
  }
}
