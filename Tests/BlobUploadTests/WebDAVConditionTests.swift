import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// No file is replaced unless requested, on servers that implement `Overwrite: F` and `If-None-Match` and on those that
/// ignore them.
@Suite struct WebDAVConditionTests {
  private static let others: [UInt8] = [1, 2, 3]

  private func uploader(_ peer: some ProtocolPeer, _ transport: any Transport = SocketTransport()) -> Uploader {
    let uploadProtocol = WebDAV()
    var uploader = Uploader(
      UploadDestination(
        endpoint: peer.endpoint, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits(at: peer.endpoint)),
      transport: transport, retry: RetryPolicy(retries: 3))
    uploader.clock = LeapingClock()
    return uploader
  }

  @Test(arguments: [100, 5 << 20] as [Int64], [nil, 405, 501])
  func anExistingFileStaysIfTheServerIgnoresConditions(_ length: Int64, _ moves: Int?) async throws {
    let peer = DavPeer(heedsConditions: false) { request in
      request.method == "MOVE" ? moves.map { HTTPPeer.Reply($0) } : nil
    }
    defer { peer.stop() }
    let source = PatternSource(length: length)
    // The existing files have another length, and the same length.
    peer.publish(Self.others, as: "a")
    peer.publish(PatternSource(length: length, seed: 9).bytes(count: Int(length)), as: "b")
    for name in ["a", "b"] as [BytePath] {
      let before = peer.contents(of: name)
      let error = await #expect(throws: UploadError.self) { _ = try await uploader(peer).upload(source, as: name) }
      #expect(error?.side == .file && error?.status == 409, "\(error as Any)")
      #expect(peer.contents(of: name) == before)
    }
    for _ in 0..<2 { _ = try await uploader(peer).upload(source, as: "c") }
    #expect(peer.contents(of: "c") == source.bytes(count: Int(length)) && peer.unfinished() == 0, "\(peer.requests)")
  }

  /// While a large file is sent, another client takes its name.
  @Test func aFileStoredByAnotherClientMeanwhileIsNotReplaced() async throws {
    let holder = Monitor<DavPeer?>(nil)
    let peer = DavPeer(heedsConditions: false) { request in
      if request.method == "PUT" { holder.update { $0 }?.publish(Self.others, as: "a") }
      return nil
    }
    holder.update { $0 = peer }
    defer {
      holder.update { $0 = nil }
      peer.stop()
    }
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer).upload(PatternSource(length: 5 << 20), as: "a")
    }
    #expect(error?.status == 409, "\(error as Any)")
    #expect(peer.contents(of: "a") == Self.others && peer.unfinished() == 0)
  }

  @Test func aFileThatCameBeforeTheChunksAreAssembledIsNotReplaced() async throws {
    let peer = NextcloudPeer(heedsConditions: false, atChunk: 3) { $0.publish(Self.others, as: "a") }
    defer { peer.stop() }
    var uploader = uploader(peer)
    uploader.partSize = 1
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader.upload(PatternSource(length: 12 << 20), as: "a")
    }
    #expect(error?.status == 409, "\(error as Any)")
    #expect(peer.contents(of: "a") == Self.others && peer.unfinished() == 0)
  }

  /// Two files of one push whose names are equal for the server are not assembled at the same time.
  @Test func chunksAreAssembledWhileNoOtherUploadIsAtTheName() async throws {
    let holder = Monitor<NameGates?>(nil)
    let isAlone = Monitor(true)
    let peer = NextcloudPeer { request in
      guard request.method == "MOVE" else { return nil }
      isAlone.update { $0 = $0 && holder.update { $0 }?.count == 1 }
      return nil
    }
    defer { peer.stop() }
    let uploader = uploader(peer)
    holder.update { $0 = uploader.destination.acquaintance.names }
    _ = try await uploader.upload(PatternSource(length: 12 << 20), as: "a")
    #expect(isAlone.update { $0 })
  }

  @Test(arguments: [false, true]) func theConditionIsTriedOnce(_ heeds: Bool) async throws {
    let peer = DavPeer(heedsConditions: heeds)
    defer { peer.stop() }
    let uploader = uploader(peer)
    for number in 0..<20 { _ = try await uploader.upload(PatternSource(length: 100), as: BytePath("\(number)")) }
    #expect(peer.names().count == 20 && peer.unfinished() == 0)
    // Each file is queried under both of its names; before that its name is queried, until the condition is known to
    // work.
    #expect(peer.requests.count { $0.hasPrefix("HEAD") } == 40 + (heeds ? 5 : 20), "\(peer.requests)")
    #expect(peer.requests.count { $0.hasPrefix("MOVE") } == 21)
    let temporary = peer.requests.filter { $0.hasPrefix("PUT") }.map { $0.dropFirst(4) }
    #expect(temporary.count == 22)
    // The files of the trial are deleted.
    let left = Set(temporary).subtracting(peer.requests.filter { $0.hasPrefix("DELETE") }.map { $0.dropFirst(7) })
    #expect(left.count == 20)
  }

  /// The session of a push that must not overwrite is useless for one that may. Its data at the server is deleted.
  @Test func anUploadThatMayOverwriteDeletesWhatTheOneBeforeLeft() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    let source = PatternSource(length: 100)
    var cut = uploader(
      peer,
      FaultyTransport(SocketTransport()) { _, request in
        request.method == "PUT" ? .loseAnswer : .none
      })
    cut.journal = journal
    cut.retry = RetryPolicy(retries: 0)
    await #expect(throws: UploadError.self) { _ = try await cut.upload(source, as: "a") }
    #expect(peer.unfinished() == 100)
    var next = uploader(peer)
    next.journal = journal
    _ = try await next.upload(source, as: "a", overwrite: true)
    #expect(peer.names() == ["a"] && peer.unfinished() == 0, "\(peer.requests)")
    await journal.close()
  }

  /// The session of a push that may overwrite is not resumed by one that must not.
  @Test func anUploadThatMayNotOverwriteBeginsAnew() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let folder = try ScratchFolder()
    let journal = try await Journal(at: folder.path.appending("journal"))
    peer.publish(Self.others, as: "a")
    var cut = uploader(
      peer,
      FaultyTransport(SocketTransport()) { _, request in
        request.method == "PUT" ? .loseAnswer : .none
      })
    cut.journal = journal
    cut.retry = RetryPolicy(retries: 0)
    await #expect(throws: UploadError.self) {
      _ = try await cut.upload(PatternSource(length: 100), as: "a", overwrite: true)
    }
    var next = uploader(peer)
    next.journal = journal
    let error = await #expect(throws: UploadError.self) {
      _ = try await next.upload(PatternSource(length: 100), as: "a")
    }
    #expect(error?.status == 409, "\(error as Any)")
    #expect(peer.contents(of: "a") == Self.others && peer.unfinished() == 0, "\(peer.requests)")
    await journal.close()
  }

  /// A server that truncates names at a query character would replace the file with the truncated name.
  @Test func aNameThatTheServerCutsReplacesNoOther() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    peer.publish(Self.others, as: "q")
    let source = PatternSource(length: 100)
    let error = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer, CuttingNames()).upload(source, as: "q?uest", overwrite: true)
    }
    #expect(error?.message.contains("a file of another name") == true, "\(error as Any)")
    #expect(peer.contents(of: "q") == Self.others && peer.unfinished() == 0, "\(peer.requests)")
    // Also if the file itself is there, which does not show that the server means it.
    peer.publish([1, 2], as: "q?uest")
    let other = await #expect(throws: UploadError.self) {
      _ = try await uploader(peer, CuttingNames()).upload(source, as: "q?uest", overwrite: true)
    }
    #expect(other?.message.contains("the server may mean") == true, "\(other as Any)")
    #expect(peer.contents(of: "q") == Self.others && peer.contents(of: "q?uest") == [1, 2], "\(peer.requests)")
    #expect(peer.unfinished() == 0)
  }

  @Test func aNameWithAQuestionMarkReplacesItsFile() async throws {
    let peer = DavPeer()
    defer { peer.stop() }
    let source = PatternSource(length: 100)
    peer.publish(Self.others, as: "q?uest")
    for _ in 0..<2 { _ = try await uploader(peer).upload(source, as: "q?uest", overwrite: true) }
    #expect(peer.contents(of: "q?uest") == source.bytes(count: 100) && peer.names() == ["q?uest"])
  }

  /// A server without MOVE that tells no version of the file is asked once for each file.
  @Test func aFileWithoutAVersionIsAskedForOnce() async throws {
    let peer = DavPeer { request in
      switch request.method {
      case "MOVE": .init(405)
      case "HEAD" where request.path == "/a": .init(200, ["Content-Length": "3"])
      default: nil
      }
    }
    defer { peer.stop() }
    peer.publish(Self.others, as: "a")
    let source = PatternSource(length: 3)
    _ = try await uploader(peer).upload(source, as: "a", overwrite: true)
    #expect(peer.contents(of: "a") == source.bytes(count: 3))
    let put = try #require(peer.requests.lastIndex { $0 == "PUT /a" })
    #expect(peer.requests[..<put].count { $0 == "HEAD /a" } == 1, "\(peer.requests)")
  }

  /// A server without MOVE publishes an incomplete file when the connection breaks.
  @Test(arguments: [false, true]) func aPartThatABrokenTryLeftIsReplacedAndNothingElse(_ isOurs: Bool) async throws {
    let peer = DavPeer { $0.method == "MOVE" ? .init(405) : nil }
    defer { peer.stop() }
    let source = PatternSource(length: 1000)
    let left = isOurs ? source.bytes(count: 14) : Self.others
    let puts = Monitor(0)
    let transport = FaultyTransport(SocketTransport()) { _, request in
      guard request.method == "PUT", request.url.path == "/a" else { return .none }
      let number = puts.update { puts in
        puts += 1
        return puts
      }
      if number == 1 { peer.publish(left, as: "a") }
      return number == 1 ? .before(.broken) : .none
    }
    let uploader = uploader(peer, transport)
    do {
      _ = try await uploader.upload(source, as: "a")
      #expect(isOurs && peer.contents(of: "a") == source.bytes(count: 1000))
    } catch {
      #expect(!isOurs && error.status == 409 && error.message.contains("while this one was sent"), "\(error)")
      #expect(peer.contents(of: "a") == Self.others)
    }
  }
}

/// Decodes the `Destination` of a MOVE twice, like wsgidav.
private struct CuttingNames: Transport {
  private let transport = SocketTransport()

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    var request = request
    if let place = request.headers["Destination"], let cut = place.firstRange(of: "%3F") {
      request.headers["Destination"] = String(place[..<cut.lowerBound])
    }
    return try await transport.send(request, body: body, on)
  }
}
