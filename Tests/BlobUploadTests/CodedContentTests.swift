import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// Servers whose responses to HEAD or GET do not show the file as it is stored.
@Suite struct CodedContentTests {
  /// A server that has stored what it was sent, and returns it compressed if it is asked for any coding, or always.
  private func peer(always: Bool) -> HTTPPeer {
    let files = Mutex<[String: [UInt8]]>([:])
    return HTTPPeer { request in
      if request.method == "PUT" {
        files.withLock { $0[request.path] = request.body }
        return .init(201)
      }
      guard let bytes = files.withLock({ $0[request.path] }) else { return .init(404) }
      if request.method == "HEAD" { return .init(200, [:], bytes) }
      let isPlain = !always && request.headers["Accept-Encoding"] == "identity"
      return isPlain ? .init(200, [:], bytes) : .init(200, ["Content-Encoding": "gzip"], [31, 139, 8, 0])
    }
  }

  private func uploader(_ peer: HTTPPeer) async throws -> Uploader {
    var uploader = Uploader(
      try await UploadDestination.discover(
        peer.url, speaking: NegotiatedProtocol(asksForNames: true), over: SocketTransport()),
      transport: SocketTransport(), retry: RetryPolicy(retries: 0))
    uploader.clock = LeapingClock()
    return uploader
  }

  @Test func aServerIsAskedNotToCompress() async throws {
    let peer = peer(always: false)
    defer { peer.stop() }
    let (uploader, source) = (try await uploader(peer), PatternSource(length: 5000))
    _ = try await uploader.upload(source, as: "a")
    try await uploader.verify(source, source.info, at: uploader.destination.target("a", length: 5000))
    #expect(try await uploader.upload(source, as: "a")?.isCompared == true)
  }

  /// Nothing is known of the bytes, so they are not called others.
  @Test func compressedContentIsNotCompared() async throws {
    let peer = peer(always: true)
    defer { peer.stop() }
    let (uploader, source) = (try await uploader(peer), PatternSource(length: 5000))
    _ = try await uploader.upload(source, as: "a")
    let words = "cannot be read back: the server sends it compressed (gzip)"
    let compared = await #expect(throws: UploadError.self) {
      try await uploader.verify(source, source.info, at: uploader.destination.target("a", length: 5000))
    }
    #expect(compared?.message.contains(words) == true && compared?.saysOtherBytes == false, "\(compared as Any)")
    let again = await #expect(throws: UploadError.self) { try await uploader.upload(source, as: "a") }
    #expect(again?.message.contains(words) == true && again?.status != 409, "\(again as Any)")
  }
}
