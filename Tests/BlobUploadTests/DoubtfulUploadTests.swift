import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// Uploads whose success may have been the response to another request.
@Suite struct DoubtfulUploadTests {
  private static let surplus = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"

  private func status(_ files: StoredFiles, _ request: HTTPPeer.Request) -> HTTPPeer.Reply {
    files[request.path].map { .init(200, [:], $0) } ?? .init(404)
  }

  /// Stores files, except that the first PUT of `lost` is answered and not stored. A second response follows at
  /// `moment`.
  private func peer(losing lost: String, _ files: StoredFiles, _ moment: Signal? = nil) -> HTTPPeer {
    HTTPPeer { request in
      if request.method != "PUT" { return status(files, request) }
      var reply = HTTPPeer.Reply(201)
      if files.isFirst(request.path), request.path == lost {
        reply.surplus = {
          moment?.wait()
          return Self.surplus
        }
      } else {
        files[request.path] = request.body
      }
      return reply
    }
  }

  /// No further request uses the connection on which the second response arrives.
  @Test func theLastFileOfAConnectionIsProvedToo() async throws {
    let (desk, files, moment) = (try await Desk(), StoredFiles(), Signal())
    let peer = peer(losing: "/b", files, moment)
    defer { peer.stop() }
    let ending = EndingObserver { count in
      if count < 2 { return }
      // Long enough for the worker to rest.
      usleep(50_000)
      moment.raise()
      usleep(100_000)
    }
    #expect(try await desk.run(desk.queue(to: peer), ["a", "b"], ending).sent == 2)
    #expect(files.paths == ["/a", "/b"], "\(peer.requests)")
  }

  /// As in a push that is killed while the server is asked.
  @Test func theJournalHasTheDoubtBeforeTheServerIsAsked() async throws {
    let (desk, files) = (try await Desk(), StoredFiles())
    let (asked, looked) = (Signal(), Signal())
    let peer = HTTPPeer { request in
      if request.method == "HEAD", request.path == "/b" {
        asked.raise()
        looked.wait()
      }
      if request.method != "PUT" { return status(files, request) }
      if files.isFirst(request.path), request.path == "/b" {
        let surplus = "1\r\nContent-Length: 0\r\n\r\nHTTP/1.1 201 Created\r\nX-Number: 2"
        return .init(201, ["X-Number": surplus])
      }
      files[request.path] = request.body
      return .init(201)
    }
    defer { peer.stop() }
    let queue = desk.queue(to: peer)
    async let outcomes = desk.run(queue, ["a", "b", "c"])
    await asked.raised()
    // The journal commits what was noted before within 250 ms.
    try await Task.sleep(for: .milliseconds(500))
    let killed = try await Journal(reading: desk.journal.path)
    let done = try await killed.entries(.done, limit: 10).map(\.intent.path)
    await killed.close()
    looked.raise()
    #expect(!done.contains("b"), "\(done)")
    #expect(try await outcomes.sent == 3)
    #expect(try await desk.run(queue, ["a", "b", "c"]).doneBefore == 3)
    #expect(try await desk.journal.entries(.done, limit: 10).count == 3)
    #expect(try await desk.journal.summary().map(\.count) == [3])
  }

  /// The request that stores the file goes to another URL than the file's.
  @Test func aFileThatWasRedirectedIsDoubtedToo() async throws {
    let (desk, files) = (try await Desk(), StoredFiles())
    let peer = HTTPPeer { request in
      guard request.path.hasPrefix("/stored/") else {
        let isCut = request.path == "/c" && request.method == "PUT" && files.isFirst("/c")
        return isCut ? nil : .init(307, ["Location": "/stored\(request.path)"])
      }
      if request.method != "PUT" { return status(files, request) }
      if request.path != "/stored/b" || !files.isFirst(request.path) { files[request.path] = request.body }
      return .init(201)
    }
    defer { peer.stop() }
    #expect(try await desk.run(desk.queue(to: peer), ["a", "b", "c"]).sent == 3)
    #expect(files.paths == ["/stored/a", "/stored/b", "/stored/c"], "\(peer.requests)")
  }

  @Test func filesThatWereAloneOnTheirConnectionsAreNotAskedFor() async throws {
    let (desk, files) = (try await Desk(), StoredFiles())
    let peer = HTTPPeer { request in
      if request.method != "PUT" { return status(files, request) }
      files[request.path] = request.body
      let surplus = "1\r\nContent-Length: 0\r\n\r\nHTTP/1.1 201 Created\r\nX-Number: 2"
      return .init(201, ["X-Number": surplus])
    }
    defer { peer.stop() }
    let names = ["a", "b", "c", "d", "e"]
    let queue = desk.queue(to: peer)
    queue.uploader.destination.acquaintance.putAnswers.trust(folderOf: peer.url)
    #expect(try await desk.run(queue, names).sent == 5)
    // The first file was sent before the server was known to respond twice.
    #expect(peer.requests.filter { $0.hasPrefix("HEAD") && $0 != "HEAD /a" } == [], "\(peer.requests)")
  }

  /// Another process begins to send to the name of a file that this one has counted as sent.
  @Test func aLostFileWhoseNameAnotherProcessUsesFails() async throws {
    let (desk, files, process) = (try await Desk(), StoredFiles(), IdleProcess())
    let (asked, claimed) = (Signal(), Signal())
    let peer = HTTPPeer { request in
      if request.method != "PUT" { return status(files, request) }
      let isFirst = files.isFirst(request.path)
      if isFirst, request.path == "/c" {
        asked.raise()
        claimed.wait()
        return nil
      }
      if !isFirst || request.path != "/b" { files[request.path] = request.body }
      return .init(201)
    }
    defer { peer.stop() }
    let queue = desk.queue(to: peer)
    async let outcomes = desk.run(queue, ["a", "b", "c"])
    await asked.raised()
    // The journal has committed by then that `b` is done.
    try await Task.sleep(for: .milliseconds(500))
    let other = try await Journal(at: desk.journal.path, as: process.mark)
    let item = UploadItem(
      source: PatternSource(length: 7), info: BlobInfo(length: 7), identity: "/other/b",
      target: queue.uploader.destination.target("b", length: 7))
    let id = try await other.destinationID(JournalDestination(endpoint: host.text, protocolName: "put"))
    #expect(try await other.claim([item.intent()], destination: id).first?.name == "fresh")
    claimed.raise()
    let ended = try await outcomes
    #expect(ended.error("b")?.message.contains("process \(process.pid) is sending to that name") == true)
    #expect(ended.sent == 2)
    #expect(try await desk.journal.entries(.failed, limit: 10).map(\.intent.source) == ["/card/b"])
    await other.close()
  }

  /// A queue may be kept for further runs, and an item's source may be large.
  @Test func nothingOfTheFilesIsKeptAfterARun() async throws {
    let (desk, files) = (try await Desk(), StoredFiles())
    let peer = peer(losing: "none", files)
    defer { peer.stop() }
    var queue = desk.queue(to: peer)
    queue.destinationID = try await desk.journal.destinationID(
      JournalDestination(endpoint: peer.url.text, protocolName: "put"))
    weak var kept: Held?
    do {
      let held = Held()
      kept = held
      let source = HoldingSource(held: held)
      let item = UploadItem(
        source: source, info: BlobInfo(length: 10), identity: "/card/a",
        target: queue.uploader.destination.target("a", length: 10))
      _ = try await queue.upload(item, nil)
    }
    // The worker's thread releases the last exchange on its own.
    for _ in 0..<500 where kept != nil { try await Task.sleep(for: .milliseconds(10)) }
    #expect(kept == nil)
    withExtendedLifetime(queue) {}
  }
}

/// A fact that threads wait for.
private final class Signal: Sendable {
  private let state = Monitor(false)

  func raise() { state.update { $0 = true } }
  func wait() { state.wait { $0 ? () : nil } }
  func raised() async {
    while !state.update({ $0 }) { try? await Task.sleep(for: .milliseconds(5)) }
  }
}

/// Calls its closure with the number of items that have ended.
private final class EndingObserver: UploadObserver {
  private let count = Atomic(0)
  private let ending: @Sendable (Int) -> Void

  init(_ ending: @escaping @Sendable (Int) -> Void) { self.ending = ending }

  func started(_ item: UploadItem, _ progress: UploadProgress) {}
  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    ending(count.add(1, ordering: .relaxed).newValue)
  }
}

private final class Held: Sendable {}

private struct HoldingSource: BlobSource {
  let held: Held
  private var pattern: PatternSource { PatternSource(length: 10) }
  var access: BlobAccess { .random }

  init(held: Held) { self.held = held }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { BlobInfo(length: 10) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try pattern.open(at: offset, cancel)
  }
}
