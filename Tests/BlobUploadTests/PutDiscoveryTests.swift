import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Whether a server that is sent plain PUTs publishes groups of files, and compares files itself.
@Suite struct PutDiscoveryTests {
  private static let fields: HTTPHeaders = [
    "Allow": "GET, HEAD, PUT, OPTIONS", "Tus-Version": "1.0.0", "Upload-Limit": "max-age=60",
    "Want-Content-Digest": "sha-256=9", "Fullbore-Group": "members=16",
  ]

  private func discover(
    _ url: HTTPURL, patience: Duration = .seconds(10)
  ) async throws(UploadError) -> UploadDestination {
    var put = NameInUseTests.asking()
    put.patience = patience
    return try await UploadDestination.discover(
      url, speaking: put, retry: RetryPolicy(retries: 2, first: .milliseconds(1)), over: SocketTransport())
  }

  /// A server that is stopped while it is asked, and started again, was taken for one without groups: a photo appeared
  /// without its film.
  @Test(arguments: [(nil, 1), (nil, 3), (500, 1), (500, 2), (502, 1), (503, 1)])
  func aServerThatWasStoppedIsAskedAgain(_ status: Int?, _ times: Int) async throws {
    let asked = Atomic(0)
    let peer = HTTPPeer { request in
      if request.method != "OPTIONS" { return .init(404) }
      if asked.add(1, ordering: .relaxed).newValue > times { return .init(204, Self.fields) }
      return status.map { .init($0) }
    }
    defer { peer.stop() }
    #expect(try await discover(peer.url).traits.publishesGroups)
  }

  /// As with tus+: such a server may publish groups, and compare files itself.
  @Test(arguments: [nil, "tus", "resumable", "dav"])
  func aServerThatFailsSaysNothingAboutItself(_ named: String?) async throws {
    let asked = Atomic(0)
    let peer = HTTPPeer { _ in
      asked.add(1, ordering: .relaxed)
      return .init(500)
    }
    defer { peer.stop() }
    var settings = ProtocolSettings()
    settings.asksForNames = true
    let discovery = try KnownProtocols.discovery(named, settings, at: peer.url)
    let error = await #expect(throws: UploadError.self) {
      try await UploadDestination.discover(
        peer.url, speaking: discovery, retry: RetryPolicy(retries: 2, first: .milliseconds(1)), over: SocketTransport())
    }
    #expect(error?.side == .destination && error?.status == 500, "\(error as Any)")
    #expect(asked.load(ordering: .relaxed) == 3)
  }

  @Test func aServerThatCannotBeReachedSaysNothing() async throws {
    let peer = HTTPPeer { _ in .init(204, Self.fields) }
    peer.stop()
    let error = await #expect(throws: UploadError.self) { try await discover(peer.url) }
    #expect(error?.isUnreachable == true)
  }

  /// A server that never responds to OPTIONS may take files all the same.
  @Test(arguments: [nil, 400, 401, 404, 405, 500, 501])
  func aServerWithoutOptionsTakesFiles(_ status: Int?) async throws {
    let peer = HTTPPeer { _ in status.map { .init($0) } }
    defer { peer.stop() }
    let found = try await discover(peer.url, patience: .milliseconds(300))
    #expect(!found.traits.publishesGroups && (found.uploadProtocol as? PlainPut)?.asksFirst == true)
  }
}
