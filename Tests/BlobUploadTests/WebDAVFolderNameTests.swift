import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
@testable import BlobUpload
import Blobs
import Testing

/// A folder has the name of the file, as when the slash at the end of the destination was forgotten. MOVE with
/// `Overwrite: T` would delete it with all that it contains.
@Suite struct WebDAVFolderNameTests {
  private func expectRefused(
    _ uploader: Uploader, _ length: Int64, _ overwrite: Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) async {
    let error = await #expect(throws: UploadError.self, sourceLocation: sourceLocation) {
      _ = try await uploader.upload(PatternSource(length: length, seed: 2), as: "fotos", overwrite: overwrite)
    }
    #expect(
      error?.recovery == .giveUp && error?.message.contains("a folder has that name") == true, "\(error as Any)",
      sourceLocation: sourceLocation)
  }

  @Test(arguments: [true, false], [100, 5 << 20])
  func noFileReplacesAFolder(_ tellsProperties: Bool, _ length: Int64) async throws {
    for heeds in [true, false] {
      let peer = DavPeer(heedsConditions: heeds, tellsProperties: tellsProperties)
      defer { peer.stop() }
      let uploader = WebDAVTests().uploader(peer)
      _ = try await uploader.upload(PatternSource(length: 100), as: "fotos/a.jpg")
      for overwrite in [true, false] { await expectRefused(uploader, length, overwrite) }
      #expect(peer.names() == ["fotos/a.jpg"] && peer.unfinished() == 0, "\(peer.requests)")
      // A large file is refused before its bytes are sent.
      if length > 1000 { #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1, "\(peer.requests)") }
    }
  }

  @Test(arguments: [100, 12 << 20]) func noFileReplacesAFolderOfNextcloud(_ length: Int64) async throws {
    let peer = NextcloudPeer()
    defer { peer.stop() }
    let destination = try await UploadDestination.discover(peer.endpoint, named: "dav", over: SocketTransport())
    var uploader = Uploader(destination, transport: SocketTransport(), retry: RetryPolicy(retries: 3), partSize: 1)
    uploader.clock = LeapingClock()
    _ = try await uploader.upload(PatternSource(length: 100), as: "fotos/a.jpg")
    for overwrite in [true, false] { await expectRefused(uploader, length, overwrite) }
    #expect(peer.names() == ["fotos/a.jpg"] && peer.unfinished() == 0, "\(peer.requests)")
  }

  @Test(arguments: [true, false]) func aFileIsReplacedAsBefore(_ tellsProperties: Bool) async throws {
    let peer = DavPeer(tellsProperties: tellsProperties)
    defer { peer.stop() }
    let uploader = WebDAVTests().uploader(peer)
    for seed in [1, 2] as [UInt64] {
      let source = PatternSource(length: 100, seed: seed)
      _ = try await uploader.upload(source, as: "a.jpg", overwrite: true)
      #expect(peer.contents(of: "a.jpg") == source.bytes(count: 100))
    }
  }
}
