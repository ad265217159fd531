import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

// Strange answers, and what they must not lead to.
extension WebDAVTests {
  /// Two clients resume one upload, because a machine was cloned, or its backup was restored.
  @Test func clientsWithCopiesOfOneJournalShareNoTemporaryName() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let names = Monitor<[String]>([])
    for copy in ["first", "second"] {
      let path = folder.path.appending(BytePath(copy))
      let journal = try await Journal(at: folder.path.appending("journal"))
      if copy == "first" {
        var cut = uploader(peer, retries: 0)
        cut.journal = journal
        cut.transport = FaultyTransport(SocketTransport()) { _, request in request.method == "PUT" ? .loseAnswer : .none
        }
        await #expect(throws: UploadError.self) { _ = try await cut.upload(PatternSource(length: 100), as: "a") }
      }
      let entry = try #require(try await journal.unfinished().first)
      await journal.close()
      let own = try await Journal(at: path)
      var uploader = uploader(peer, retries: 0)
      uploader.journal = own
      let watching = CountingTransport(SocketTransport()) { request in
        if request.method == "PUT" { names.update { $0.append(request.url.path) } }
      }
      // The response is lost, so neither client can finish the upload.
      uploader.transport = FaultyTransport(watching) { _, request in request.method == "PUT" ? .loseAnswer : .none }
      let source = PatternSource(length: 100)
      _ = try? await uploader.upload(
        source, source.info, to: uploader.destination.target("a", length: 100), resuming: entry.session)
      await own.close()
    }
    let all = names.update { $0 }
    #expect(all.count >= 2 && Set(all).count == all.count, "\(all)")
  }

  @Test func aRefusedNameLeavesNoTemporaryFileAndTheErrorHasTheReason() async throws {
    let xml =
      "<d:error xmlns:d='DAV:' xmlns:s='http://sabredav.org/ns'><s:message>no\u{202E} &#9; tabs, "
      + "\(String(repeating: "x", count: 500))</s:message></d:error>"
    let peer = DavPeer { request in
      request.method == "MOVE" ? .init(400, ["Content-Type": "application/xml"], Array(xml.utf8)) : nil
    }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    }
    let message = error?.message ?? ""
    #expect(error?.recovery == .giveUp && message.contains(": no    tabs, xxx"), "\(message)")
    #expect(message.utf8.count < 400 && peer.unfinished() == 0, "\(message)")
  }

  @Test func deepErrorAnswerIsPassedOver() async throws {
    let deep = String(repeating: "<error>", count: 5000)
    let peer = DavPeer { $0.method == "PUT" ? .init(400, ["Content-Type": "text/xml"], Array(deep.utf8)) : nil }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    }
    #expect(error?.message.hasSuffix("400 (it does not understand the request)") == true, "\(error as Any)")
  }

  @Test func pipeThatIsLongerThanWhatIsHeldArrivesWhole() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    var uploader = uploader(peer)
    uploader.spool.memory = 256 << 10
    let pipe = PatternSource(length: 3 << 20, access: .sequential, knowsLength: false)
    _ = try await uploader.upload(pipe, as: "film")
    #expect(peer.contents(of: "film") == PatternSource(length: 3 << 20).bytes(count: 3 << 20))
  }

  /// The server has five bytes of the pipe when it reports that the pipe is stored.
  @Test func answerBeforeTheEndOfAPipeIsNotBelieved() async throws {
    let script = Script { _, request in
      switch request.method {
      case "HEAD": .status(request.url.path.contains(".fullbore-") ? 200 : 404, ["Content-Length": "5"])
      default: .status(201)
      }
    }
    let uploader = BlobUploadTests.uploader(WebDAV(), script, retries: 2, limits: PartLimits(smallest: .max))
    let pipe = PatternSource(length: 1000, access: .sequential, knowsLength: false)
    let error = await #expect(throws: UploadError.self) { _ = try await uploader.upload(pipe, as: "film") }
    #expect(error?.message.contains("has 5 bytes, and was sent 1000") == true, "\(error as Any)")
    #expect(!script.methods.contains("MOVE"), "\(script.methods)")
  }

  @Test func otherBytesOfTheSameLengthAreSeenByACheck() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    var uploader = uploader(peer)
    uploader.journal = journal
    _ = try await uploader.upload(PatternSource(length: 100), as: "a")
    let location = try #require(try await journal.entries(.done, limit: 1).first?.location)
    let target = uploader.destination.target("a", length: 100)
    #expect(try await uploader.isThere(target, location: location))
    #expect(try await uploader.isThere(target, location: target.url.text), "a release before kept no version")
    let other = BlobSlice(PatternSource(length: 100, seed: 2), length: 100)
    _ = try await SocketTransport().send(HTTPRequest("PUT", target.url), body: other, Exchange())
    #expect(try await !uploader.isThere(target, location: location))
    await journal.close()
  }

  @Test func etagThatIsAnotherInEachAnswerSaysNothing() async throws {
    let count = Monitor(0)
    let peer = DavPeer { request in
      guard request.method == "HEAD" else { return nil }
      let number = count.update { count in
        count += 1
        return count
      }
      return .init(200, ["ETag": "W/\"\(number)\""], [UInt8](repeating: 1, count: 100))
    }
    defer { peer.stop() }
    let uploader = uploader(peer)
    let target = uploader.destination.target("a", length: 100)
    #expect(try await uploader.isThere(target, location: "\(target.url)#%220%22&"))
    #expect(try await !uploader.isThere(uploader.destination.target("a", length: 99), location: nil))
  }

  @Test func anETagMayChangeWithTheTime() async throws {
    let peer = DavPeer(tagsBeforeTime: true)
    defer { peer.stop() }
    let uploader = uploader(peer)
    var target = uploader.destination.target("a", length: 100)
    target.modified = 1_700_000_000_000_000_000
    let source = PatternSource(length: 100)
    _ = try await uploader.upload(source, source.info, to: target)
    #expect(peer.contents(of: "a") == source.bytes(count: 100))
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1, "\(peer.requests)")
  }

  @Test func aServerThatOffersWebDAVIsDiscovered() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let found = try await UploadDestination.discover(peer.endpoint, named: nil, over: SocketTransport())
    #expect(found.uploadProtocol.name == "dav")
    let refused = Script(.status(401))
    await #expect(throws: UploadError.self) {
      _ = try await UploadDestination.discover(host, named: "dav", over: refused)
    }
    let nginx = try await UploadDestination.discover(host, named: "dav", over: Script(.status(405)))
    #expect(nginx.uploadProtocol.name == "dav")
  }

  @Test func thePartSizeDoesNotSplitAWebDAVUpload() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let destination = try await UploadDestination.discover(peer.endpoint, named: "dav", over: SocketTransport())
    let uploader = Uploader(destination, transport: SocketTransport(), partSize: 1 << 20)
    _ = try await uploader.upload(PatternSource(length: 6 << 20), as: "film")
    #expect(peer.contents(of: "film")?.count == 6 << 20)
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1)
  }
}
