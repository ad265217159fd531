import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import TestSupport
import Testing

@testable import BlobUpload

extension WebDAVTests {
  /// The destination's own folder is created before a large body is sent: a refusal would come after its last byte.
  @Test(arguments: [true, false]) func aLargeFileIsSentOnceIntoAFolderThatIsMissing(_ moves: Bool) async throws {
    let peer = DavPeer { !moves && $0.method == "MOVE" ? .init(405) : nil }
    defer { peer.stop() }
    let uploader = uploader(peer, at: "backup/phone/")
    let progress = UploadProgress()
    let source = PatternSource(length: 6 << 20)
    _ = try await uploader.upload(
      source, source.info, to: uploader.destination.target("film.mov", length: 6 << 20), progress: progress)
    #expect(peer.names() == ["backup/phone/film.mov"])
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == (moves ? 1 : 2), "\(peer.requests)")
  }

  /// A server of scripts answers every HEAD with a length of 0.
  @Test func aLengthOfZeroIsCheckedByGet() async throws {
    let store = FoldedNameTests.Store(folds: false)
    let peer = HTTPPeer { request in
      var reply = store.answer(request)
      if request.method == "HEAD" { reply.body = [] }
      return reply
    }
    defer { peer.stop() }
    var uploader = BlobUploadTests.uploader(WebDAV(), SocketTransport(), retries: 1)
    uploader.destination = UploadDestination(
      endpoint: peer.url, uploadProtocol: WebDAV(), limits: PartLimits(firstPart: .max))
    for _ in 1...2 { _ = try await uploader.upload(PatternSource(length: 7000), as: "a.jpg") }
    #expect(store.contents == [PatternSource(length: 7000).bytes(count: 7000)])
    let target = uploader.destination.target("a.jpg", length: 7000)
    #expect(try await uploader.isThere(target, location: nil))
    let error = await uploader.failure(of: 6000, as: "a.jpg")
    #expect(error?.status == 409, "\(error as Any)")
  }

  /// A pipe cannot be sent again.
  @Test(arguments: [true, false]) func aPipeIsSentIntoAFolderThatIsMissing(_ isDAV: Bool) async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    var uploader = uploader(peer, at: "backup/phone/")
    if !isDAV {
      var put = PlainPut()
      put.folders = DavFolders()
      uploader.destination = UploadDestination(
        endpoint: uploader.destination.endpoint, uploadProtocol: put, limits: put.limits)
    }
    let source = PatternSource(length: 100_000, access: .sequential, knowsLength: false)
    _ = try await uploader.upload(source, as: "dump.sql")
    #expect(peer.names() == ["backup/phone/dump.sql"])
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1, "\(peer.requests)")
  }

  /// The PUT decides, whatever the server says to MKCOL for a folder that is there.
  @Test(arguments: [403, 405, 409, 501]) func aServerThatMakesNoFolderIsSentTheLargeFile(_ status: Int) async throws {
    let peer = DavPeer { $0.method == "MKCOL" ? .init(status) : nil }
    defer { peer.stop() }
    _ = try await uploader(peer).upload(PatternSource(length: 6 << 20), as: "film.mov")
    #expect(peer.names() == ["film.mov"])
  }
}
