import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import TestSupport
import Testing

@testable import BlobUpload

/// A file never replaces a folder, whatever the server does: MOVE with `Overwrite: T` deletes a folder with all that is in
/// it. RFC 4918 §9.9.3.
@Suite struct FolderAtNameTests {
  private func uploader(_ endpoint: HTTPURL, _ uploadProtocol: any UploadProtocol, _ limits: PartLimits) -> Uploader {
    var uploader = Uploader(
      UploadDestination(endpoint: endpoint, uploadProtocol: uploadProtocol, limits: limits),
      transport: SocketTransport(), retry: RetryPolicy(retries: 1))
    uploader.clock = LeapingClock()
    return uploader
  }

  private func uploader(_ peer: some ProtocolPeer) -> Uploader {
    let dav = WebDAV()
    return uploader(peer.endpoint, dav, dav.limits(at: peer.endpoint))
  }

  private func check(_ error: UploadError?, _ context: Any) {
    #expect(error?.side == .file && error?.recovery == .giveUp && error?.status == nil, "\(error as Any) \(context)")
    #expect(error?.message.contains("a folder has that name") == true, "\(error as Any) \(context)")
  }

  @Test(
    arguments: [0, 100, 5 << 20, 20 << 20] as [Int64], [(true, true), (true, false), (false, true), (false, false)])
  func webDAVKeepsAFolder(_ length: Int64, _ server: (heeds: Bool, tells: Bool)) async throws {
    let peer = DavPeer(heedsConditions: server.heeds, tellsProperties: server.tells)
    defer { peer.stop() }
    peer.makeFolder("photos")
    peer.publish([1], as: "photos/a")
    for (overwrite, isPipe) in [(true, false), (true, true), (false, false)] {
      let source = PatternSource(
        length: length, access: isPipe ? .sequential : .random, knowsLength: !isPipe)
      let error = await #expect(throws: UploadError.self) {
        _ = try await uploader(peer).upload(source, as: "photos", overwrite: overwrite)
      }
      check(error, (overwrite, isPipe, peer.requests))
      #expect(peer.names() == ["photos/a"] && peer.unfinished() == 0, "\(peer.requests)")
    }
    if length > 16 << 20 {
      // They are refused before their bytes are sent.
      #expect(!peer.requests.contains { $0.hasPrefix("PUT") }, "\(peer.requests)")
    }
  }

  @Test(arguments: [100, 12 << 20] as [Int64], [true, false])
  func nextcloudKeepsAFolder(_ length: Int64, _ overwrite: Bool) async throws {
    let peer = NextcloudPeer()
    defer { peer.stop() }
    peer.makeFolder("photos")
    peer.publish([1], as: "photos/a")
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer).upload(PatternSource(length: length), as: "photos", overwrite: overwrite)
    }
    check(error, peer.requests)
    #expect(peer.names() == ["photos/a"] && peer.unfinished() == 0, "\(peer.requests)")
  }

  /// Another client makes the folder while the chunks are sent.
  @Test func nextcloudKeepsAFolderThatCameLater() async throws {
    let peer = NextcloudPeer(atChunk: 2) { $0.makeFolder("photos") }
    defer { peer.stop() }
    var uploader = uploader(peer)
    uploader.partSize = 1
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader.upload(PatternSource(length: 12 << 20), as: "photos", overwrite: true)
    }
    check(error, peer.requests)
    #expect(peer.names() == [] && peer.unfinished() == 0, "\(peer.requests)")
  }

  /// A push of new files must not cost a query for each of them, and a push that replaces files one query for each.
  @Test(arguments: [true, false]) func newNamesAreNotQueried(_ tellsProperties: Bool) async throws {
    let peer = DavPeer(tellsProperties: tellsProperties)
    defer { peer.stop() }
    let uploader = uploader(peer)
    func push(_ seed: UInt64) async throws -> (queries: Int, moves: Int) {
      let before = peer.requests.count
      for number in 0..<30 {
        let source = PatternSource(length: 100, seed: seed)
        _ = try await uploader.upload(source, as: BytePath("Mäi/\(number)"), overwrite: true)
        #expect(peer.contents(of: BytePath("Mäi/\(number)")) == source.bytes(count: 100))
      }
      let new = peer.requests.dropFirst(before)
      return (new.count { $0.hasPrefix("PROPFIND") }, new.count { $0.hasPrefix("MOVE") })
    }
    let first = try await push(1)
    #expect(first.queries <= 6 && first.moves == 31, "\(first) \(peer.requests)")
    let again = try await push(2)
    #expect(again.queries <= 31 && again.moves <= 32, "\(again) \(peer.requests)")
    #expect(peer.unfinished() == 0)
  }

  /// The response to MOVE comes from a server that treats a folder's name as a redirect, as Apache does.
  @Test(arguments: [301, 403, 405, 409])
  func aRefusedMoveIsExplained(_ status: Int) async throws {
    let peer = DavPeer { request in request.method == "MOVE" ? .init(status) : nil }
    defer { peer.stop() }
    peer.makeFolder("photos")
    for overwrite in [true, false] {
      let error = await #expect(throws: UploadError.self) {
        _ = try await uploader(peer).upload(PatternSource(length: 100), as: "photos", overwrite: overwrite)
      }
      check(error, peer.requests)
    }
  }

  @Test(arguments: [100, 5 << 20] as [Int64], [true, false])
  func putNamesTheFolder(_ length: Int64, _ overwrite: Bool) async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    peer.makeFolder("photos")
    let uploader = uploader(peer.endpoint, NameInUseTests.asking(), PartLimits(firstPart: .max))
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader.upload(PatternSource(length: length), as: "photos", overwrite: overwrite)
    }
    check(error, peer.requests)
  }

  /// Apache redirects a PUT to a folder's name to the name with a slash. The other files of a push are not concerned.
  @Test(arguments: [301, 302], [true, false])
  func aRedirectToTheFolderIsExplained(_ status: Int, _ isDAV: Bool) async throws {
    let peer = DavPeer { request in
      if request.method == "MOVE" { return .init(405) }
      return request.method == "PUT" && request.path == "/photos" ? .init(status, ["Location": "/photos/"]) : nil
    }
    defer { peer.stop() }
    peer.makeFolder("photos")
    let put = uploader(peer.endpoint, PlainPut(), PartLimits(firstPart: .max))
    let error = await #expect(throws: UploadError.self) {
      _ = try await (isDAV ? uploader(peer) : put).upload(PatternSource(length: 100), as: "photos", overwrite: true)
    }
    check(error, peer.requests)
  }
}
