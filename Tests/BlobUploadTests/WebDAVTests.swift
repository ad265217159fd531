import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
@testable import BlobUpload
import Blobs
import Testing

@Suite struct WebDAVTests {
  func uploader(_ peer: DavPeer, at path: String = "", _ uploadProtocol: WebDAV = WebDAV(), retries: Int = 3)
    -> Uploader
  {
    let endpoint = peer.endpoint.resolve(path)!
    var uploader = Uploader(
      UploadDestination(
        endpoint: endpoint, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits(at: endpoint)),
      transport: SocketTransport(), retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    return uploader
  }

  @Test func foldersThatAreMissingAreMadeOnce() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let uploader = uploader(peer)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<12 {
        group.addTask {
          let name = BytePath("2026/Mäi \(number % 3)/\(number).jpg")
          _ = try await uploader.upload(PatternSource(length: 100), as: name)
        }
      }
      try await group.waitForAll()
    }
    #expect(peer.names().count == 12 && peer.unfinished() == 0)
    let made = peer.requests.filter { $0.hasPrefix("MKCOL") }
    // One of the three folders is requested before its parent is known to be missing.
    #expect(made.count == 5 && Set(made).count == 4, "\(made)")
    #expect(made.contains("MKCOL /2026/M%C3%A4i%201/"))
  }

  @Test func endpointThatIsMissingIsMade() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    _ = try await uploader(peer, at: "backup/phone/").upload(PatternSource(length: 100), as: "a.jpg")
    #expect(peer.names() == ["backup/phone/a.jpg"])
  }

  @Test func everyNameIsAskedForAndEveryUploadIsPutAsideLookedAtAndMoved() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a.jpg")
    #expect(peer.requests.map { $0.prefix { $0 != " " } } == ["HEAD", "PUT", "HEAD", "MOVE", "HEAD"])
    #expect(peer.requests.dropFirst().first?.contains("/.fullbore-") == true)
  }

  /// The server supports neither MOVE nor DELETE, so each file would leave a copy under a temporary name.
  @Test func serverThatListsNoMoveGetsItStraightFromTheStart() async throws {
    let peer = try ServedFolder()
    let found = try await UploadDestination.discover(peer.endpoint, named: "dav", over: SocketTransport())
    let uploader = Uploader(found, transport: SocketTransport())
    for name in ["a", "b"] as [BytePath] { _ = try await uploader.upload(PatternSource(length: 100), as: name) }
    #expect(Set(peer.names()) == ["a", "b"])
  }

  /// `Allow` for a URL that does not exist yet lists the methods that can create it.
  @Test func serverWhosePlaceIsMissingIsTakenToMove() async throws {
    let peer = DavPeer { request in
      request.method == "OPTIONS" ? .init(200, ["DAV": "1", "Allow": "OPTIONS, MKCOL, PUT, LOCK"]) : nil
    }
    defer { peer.stop() }
    let found = try await UploadDestination.discover(peer.endpoint, named: "dav", over: SocketTransport())
    _ = try await Uploader(found, transport: SocketTransport()).upload(PatternSource(length: 100), as: "a")
    #expect(peer.requests.contains { $0.hasPrefix("MOVE") }, "\(peer.requests)")
  }

  /// If HEAD reports no length, a GET for the first byte may. A file of unknown length is sent again, and compared.
  @Test(arguments: [("bytes 0-0/1000", true), ("bytes 0-0/999", false), ("bytes 0-0/*", false), (nil, false)])
  func aFileOfUnknownLengthIsNotTakenForTheSame(_ range: String?, _ isThere: Bool) async throws {
    let script = Script { _, request throws(TransportError) in
      request.method == "HEAD" ? .status(200) : range.map { .status(206, ["Content-Range": $0]) } ?? .status(403)
    }
    let uploader = BlobUploadTests.uploader(WebDAV(), script)
    let target = uploader.destination.target("a", length: 1000)
    #expect(try await uploader.isThere(target, location: nil) == isThere)
  }

  @Test func aTemporaryFileThatStaysIsReportedOnce() async throws {
    let peer = DavPeer { ["MOVE", "DELETE"].contains($0.method) ? .init(405) : nil }
    defer { peer.stop() }
    let told = Monitor<[String]>([])
    var uploader = uploader(peer)
    uploader.notice = { text in told.update { $0.append(text) } }
    for name in ["a", "b"] as [BytePath] { _ = try await uploader.upload(PatternSource(length: 100), as: name) }
    let notices = told.update { $0 }
    #expect(notices.count == 1 && notices.first?.contains("/.fullbore-") == true, "\(notices)")
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 3, "\(peer.requests)")
  }

  @Test(arguments: [405, 501])
  func serverWithoutMoveGetsItStraightIfTheNameIsFree(_ status: Int) async throws {
    let peer = DavPeer { $0.method == "MOVE" ? .init(status) : nil }
    defer { peer.stop() }
    let uploader = uploader(peer)
    for name in ["a", "b"] as [BytePath] { _ = try await uploader.upload(PatternSource(length: 100), as: name) }
    #expect(Set(peer.names()) == ["a", "b"] && peer.unfinished() == 0)
    #expect(peer.requests.filter { $0.hasPrefix("MOVE") }.count == 1, "it is asked once")
    _ = try await uploader.upload(PatternSource(length: 100), as: "a")
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader.upload(PatternSource(length: 100, seed: 9), as: "a")
    }
    #expect(error?.side == .file && peer.contents(of: "a") == PatternSource(length: 100).bytes(count: 100))
  }

  @Test func aLockedFileIsTriedAgain() async throws {
    let locks = Monitor(3)
    let peer = DavPeer { request in
      guard request.method == "MOVE" else { return nil }
      return locks.update { left in
        left -= 1
        return left >= 0 ? HTTPPeer.Reply(423) : nil
      }
    }
    defer { peer.stop() }
    _ = try await uploader(peer, retries: 5).upload(PatternSource(length: 100), as: "a")
    #expect(peer.names() == ["a"] && peer.unfinished() == 0)
  }

  @Test(arguments: ["PUT", "MKCOL", "MOVE"])
  func aFullServerIsReportedAndNotTriedAgain(_ method: String) async throws {
    let peer = DavPeer { $0.method == method ? .init(507) : nil }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "x/a")
    }
    #expect(error?.side == .destination && error?.recovery == .giveUp && error?.message.contains("no room") == true)
    #expect(peer.requests.filter { $0.hasPrefix(method) }.count == 1)
  }

  @Test(arguments: [false, true])
  func sizeThatIsWrongIsNeverPublished(_ isPipe: Bool) async throws {
    let peer = DavPeer { request in
      let isAsked = request.method == "HEAD" && request.path.contains(".fullbore-")
      return isAsked ? .init(200, ["ETag": "\"x\""], [1, 2, 3]) : nil
    }
    defer { peer.stop() }
    let source = PatternSource(length: 100, access: isPipe ? .sequential : .random, knowsLength: !isPipe)
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(source, as: "a")
    }
    #expect(error?.message.contains("has 3 bytes, and was sent 100") == true)
    #expect(peer.names() == [])
  }

  @Test func someoneElsesBytesAreNeverPublished() async throws {
    let peer = DavPeer { request in
      let isAsked = request.method == "HEAD" && request.path.contains(".fullbore-")
      return isAsked ? .init(200, ["ETag": "\"someone else's\""], [UInt8](repeating: 0, count: 100)) : nil
    }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    }
    #expect(error?.message.contains("ETag") == true && peer.names() == [])
  }

  /// Like servers that decode `Destination` twice, and treat the rest as a query.
  @Test func nameThatIsCutByTheServerIsFoundOut() async throws {
    let peer = DavPeer { request in
      let end = request.headers["Destination"]?.contains("%3F") == true
      return request.method == "MOVE" && end ? .init(201) : nil
    }
    defer { peer.stop() }
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer).upload(PatternSource(length: 100), as: BytePath("what?.jpg"))
    }
    #expect(error?.recovery == .giveUp, "\(error as Any)")
    #expect(error?.message.contains("it has given it another name. ") == true, "\(error as Any)")
    #expect(error?.message.hasSuffix("under another name, with --name or --layout") == true, "\(error as Any)")
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: BytePath("so;what#.jpg"))
  }

  @Test func nameThatIsTakenCostsALargeFileNothing() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    _ = try await uploader(peer).upload(PatternSource(length: 100), as: "a")
    let error = await #expect(throws: UploadError.self) { () async throws in
      _ = try await uploader(peer).upload(PatternSource(length: 64 << 20), as: "a")
    }
    #expect(error?.side == .file && error?.message.contains("another file of 100 bytes") == true)
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.count == 1)
  }

  /// The response to MOVE is lost, and then the connection for the comparison breaks.
  @Test func comparisonThatIsCutIsMadeAgain() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let cuts = Monitor(3)
    let transport = FaultyTransport(SocketTransport()) { number, request in
      if request.method == "MOVE", number < 3 { return .loseAnswer }
      guard request.method == "GET" else { return .none }
      return cuts.update { left in
        left -= 1
        return left >= 0 ? .before(.broken) : .none
      }
    }
    var uploader = uploader(peer, retries: 8)
    uploader.transport = transport
    _ = try await uploader.upload(PatternSource(length: 100), as: "a")
    #expect(peer.names() == ["a"] && peer.unfinished() == 0)
  }

  /// The request of an earlier try may still run at the server, and would write into the file of the next try.
  @Test func eachTryHasATemporaryNameOfItsOwn() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let puts = Monitor(0)
    let transport = FaultyTransport(SocketTransport()) { _, request in
      guard request.method == "PUT" else { return .none }
      return puts.update { count in
        count += 1
        return count < 4 ? .loseAnswer : .none
      }
    }
    var uploader = uploader(peer, retries: 8)
    uploader.transport = transport
    for size: Int64 in [100, 5 << 20] {
      puts.update { $0 = 0 }
      let before = peer.requests.count
      _ = try await uploader.upload(PatternSource(length: size), as: BytePath("\(size)"))
      let names = peer.requests.dropFirst(before).filter { $0.hasPrefix("PUT") }
      #expect(names.count == 4 && Set(names).count == 4, "\(names)")
    }
    #expect(peer.unfinished() == 0, "what earlier tries have left is deleted: \(peer.requests)")
  }

  @Test func temporaryNamesAreInTheJournalBeforeTheyAreUsed() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let marks = Monitor<[Bool]>([])
    let watching = CountingTransport(SocketTransport()) { request in
      guard request.method == "PUT" else { return }
      let session = (try? await journal.unfinished())?.first?.session
      let tries = session?.state["leftovers"]?.split(separator: " ") ?? []
      let isKnown = tries.last.map { request.url.path.hasSuffix("/.fullbore-\($0).tmp") } ?? false
      marks.update { $0.append(isKnown) }
    }
    var uploader = uploader(peer, retries: 2)
    uploader.journal = journal
    uploader.transport = FaultyTransport(watching) { _, request in request.method == "PUT" ? .loseAnswer : .none }
    await #expect(throws: UploadError.self) { _ = try await uploader.upload(PatternSource(length: 100), as: "a") }
    #expect(marks.update { $0 } == [true, true, true] && peer.unfinished() == 300)
    let session = try #require(try await journal.unfinished().first?.session)
    await uploader.discard(session)
    #expect(peer.unfinished() == 0, "abort deletes what every try has left: \(peer.requests)")
    await journal.close()
  }
}
