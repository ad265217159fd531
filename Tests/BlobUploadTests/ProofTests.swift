import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

@testable import BlobUpload

/// Comparing files that were sent by digests that the server tells of many at once.
@Suite struct ProofTests {
  private let peer: ServedFolder
  private let desk: Desk

  init() async throws { (peer, desk) = (try ServedFolder(), try await Desk()) }

  private func queue(_ transport: any Transport) -> UploadQueue {
    var queue = desk.queue(transport)
    queue.uploader.destination = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    queue.uploader.clock = ContinuousClock()
    queue.verify = true
    return queue
  }

  private func overwrite(_ name: BytePath, seed: UInt64) async throws {
    _ = try await Uploader(queue(SocketTransport()).uploader.destination, transport: SocketTransport()).upload(
      PatternSource(length: 1000, seed: seed), as: name, overwrite: true)
  }

  /// No moment ends by itself, so that only full batches and the end of the run ask.
  @Test func oneRequestAsksForManyFiles() async throws {
    let seen = SeenRequests(SocketTransport())
    var queue = queue(seen)
    queue.uploader.clock = StoppedClock()
    let names = (0..<600).map { "\($0 % 3)/a b \($0)" }
    #expect(try await desk.run(queue, names).sent == 600)
    #expect(seen.count("GET") == 0)
    // The tasks end one after the other, and each asks for what has become of the last files.
    #expect((1...80).contains(seen.count("QUERY")), "\(seen.count("QUERY")) requests")
  }

  @Test func aFileOfOtherBytesFailsAlone() async throws {
    let queue = queue(
      SeenRequests(SocketTransport()) { request in
        if request.method == "QUERY" { try? await overwrite("bad", seed: 7) }
      })
    let first = try await desk.run(queue, ["a", "bad", "c"])
    #expect(first.sent == 2)
    let message = first.error("bad")?.message ?? ""
    #expect(message.contains("/bad: what the server has differs: the xxh128 of its 1000 bytes"), "\(message)")
    try await overwrite("bad", seed: 0)
    let second = try await desk.run(self.queue(SocketTransport()), ["a", "bad", "c"])
    #expect(second.doneBefore == 2 && second.sent == 1)
  }

  @Test func filesAreReadBackIfTheServerReportsNoDigests() async throws {
    let seen = SeenRequests(
      FaultyTransport(SocketTransport()) { _, request in request.method == "QUERY" ? .answer(.status(503)) : .none }
    ) { request in
      if request.method == "QUERY" { try? await overwrite("bad", seed: 7) }
    }
    let outcomes = try await desk.run(queue(seen), ["a", "bad", "c"])
    #expect(outcomes.sent == 2 && seen.count("GET") == 3)
    #expect(outcomes.error("bad")?.message.contains("GET ") == true)
  }

  /// Each request that something on the way swallows costs `--finish-timeout`.
  @Test func aServerThatGivesNoAnswerIsAskedOnce() async throws {
    let seen = SeenRequests(
      FaultyTransport(SocketTransport()) { _, request in request.method == "QUERY" ? .before(.timeout) : .none })
    let queue = queue(seen)
    for name in ["a", "b", "c"] { #expect(try await desk.run(queue, [name]).sent == 1) }
    #expect(seen.count("QUERY") == 1 && seen.count("GET") == 3)
  }

  private func ask(
    _ peer: HTTPURL, _ method: QueryMethod,
    _ transport: SocketTransport = SocketTransport(.init(noProgress: .seconds(20), finishing: .seconds(20)))
  ) async throws -> [VersionQuery.Answer]? {
    let destination = UploadDestination(endpoint: peer, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    return try await VersionQuery(.sha256, isAnew: true, method).ask(
      [.init(name: "a"), .init(name: "b")], at: peer, Uploader(destination, transport: transport).context())
  }

  @Test func theFirstRequestIsWaitedForBriefly() async throws {
    let (silent, method) = (ScriptedPeer([.readRequest, .hold]), QueryMethod(patience: .milliseconds(300)))
    let begin = ContinuousClock.now
    let url = try #require(HTTPURL("http://127.0.0.1:\(silent.port)/"))
    #expect(try await ask(url, method) == nil && method.isTaken == false)
    #expect(ContinuousClock.now - begin < .seconds(15))
    let heads = silent.seen.heads
    #expect(heads.count == 1 && heads[0].hasPrefix("QUERY / ") && !heads[0].contains("Want-Repr-Digest"), "\(heads)")
  }

  /// Requests that wait for the connection of the first one do not wait again.
  @Test func requestsAtTheSameTimeWaitOnce() async throws {
    let (silent, method) = (ScriptedPeer([.readRequest, .hold]), QueryMethod(patience: .seconds(3)))
    let (url, begin) = (try #require(HTTPURL("http://127.0.0.1:\(silent.port)/")), ContinuousClock.now)
    let transport = SocketTransport(.init(connections: 1))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<6 {
        group.addTask { () async throws in #expect(try await ask(url, method, transport) == nil) }
      }
      try await group.waitForAll()
    }
    #expect(ContinuousClock.now - begin < .seconds(12))
  }

  /// Reading a long file for its digest takes longer than the patience for the first request.
  @Test func aServerThatReadsAFileIsWaitedFor() async throws {
    let count = Atomic(0)
    let peer = HTTPPeer { request in
      if count.add(1, ordering: .relaxed).oldValue > 0 { usleep(1_000_000) }
      let lines = request.body.split(separator: UInt8(ascii: "\n")).map { _ in "none\n" }.joined()
      return .init(200, ["Content-Type": "application/vnd.fullbore.versions"], Array(lines.utf8))
    }
    let answers = try await ask(peer.url, QueryMethod(patience: .milliseconds(300)))
    #expect(answers == [.nothing, .nothing] && peer.requests.count == 2)
  }

  @Test func aFileIsComparedWhileAnotherIsSent() async throws {
    let isCompared = Mutex(false)
    let deadline = ContinuousClock.now + .seconds(30)
    let transport = FaultyTransport(SocketTransport()) { _, request in
      guard request.url.path.hasSuffix("/slow") else { return .none }
      return .wait { isCompared.withLock { $0 } || .now > deadline }
    }
    let observer = Outcomes { _ in isCompared.withLock { $0 = true } }
    #expect(try await desk.run(queue(transport), ["a", "slow"], observer).sent == 2)
    #expect(.now < deadline)
  }

  @Test func noFileIsDoneBeforeItIsCompared() async throws {
    let open = Mutex<[Int]>([])
    let seen = SeenRequests(SocketTransport()) { [journal = desk.journal] request in
      guard request.method == "QUERY" else { return }
      try? await journal.flush()
      let count = (try? await journal.unfinished().count) ?? 0
      open.withLock { $0.append(count) }
    }
    var queue = queue(seen)
    queue.uploader.clock = StoppedClock()
    queue.jobs = 1
    #expect(try await desk.run(queue, ["a", "b", "c"]).sent == 3)
    // The first request finds out whether the server takes such requests.
    #expect(open.withLock { $0 } == [3, 3])
    #expect(try await desk.journal.unfinished().isEmpty)
  }

  @Test func cancellingEndsFilesThatWait() async throws {
    let isAsked = AsyncStream<Void>.makeStream()
    let queue = queue(
      SeenRequests(SocketTransport()) { request in
        if request.method != "QUERY" { return }
        isAsked.continuation.yield()
        try? await Task.sleep(for: .seconds(3600))
      })
    let names = (0..<100).map { "\($0)" }
    let task = Task { try await desk.run(queue, names) }  // ends below
    for await _ in isAsked.stream { break }
    task.cancel()
    let error = await #expect(throws: UploadError.self) { _ = try await task.value }
    #expect(error?.side == .cancelled)
    #expect(try await desk.run(self.queue(SocketTransport()), names).sent == 100)
  }

  /// The server takes files and answers no question. All tasks would go on, with ever more files in memory.
  @Test func onlySoManyFilesWait() async throws {
    let counts = Mutex((begun: 0, ended: 0, most: 0))
    let transport = SeenRequests(SocketTransport()) { request in
      if request.method == "PUT" {
        counts.withLock { counts in
          counts.begun += 1
          counts.most = max(counts.most, counts.begun - counts.ended)
        }
      } else if request.method == "QUERY" {
        // One of the two ends the wait: a bound that holds, or one that does not.
        for _ in 0..<300 where counts.withLock({ $0.begun }) < 500 { try? await Task.sleep(for: .milliseconds(5)) }
      }
    }
    let observer = Outcomes { count in counts.withLock { $0.ended = count } }
    #expect(try await desk.run(queue(transport), (0..<800).map { "\($0)" }, observer).sent == 800)
    // 256 wait, and each of 64 tasks has sent one more.
    let most = counts.withLock { $0.most }
    #expect((128...320).contains(most), "\(most) files")
  }
}

/// Calls a closure before each request, and counts requests.
private final class SeenRequests: Transport {
  private let transport: any Transport
  private let before: @Sendable (HTTPRequest) async -> Void
  private let methods = Mutex<[String]>([])

  init(_ transport: any Transport, _ before: @escaping @Sendable (HTTPRequest) async -> Void = { _ in }) {
    (self.transport, self.before) = (transport, before)
  }

  func count(_ method: String) -> Int { methods.withLock { $0.count { $0 == method } } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    methods.withLock { $0.append(request.method) }
    await before(request)
    return try await transport.send(request, body: body, on)
  }
}

/// A clock of which each sleep lasts until it is cancelled.
private struct StoppedClock: Clock {
  var now: ContinuousClock.Instant { .now }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
    try await Task.sleep(for: .seconds(3600))
  }
}
