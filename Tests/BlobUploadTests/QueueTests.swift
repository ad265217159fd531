import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests many items with a journal and one destination.
@Suite struct QueueTests {
  @Test func aRunThatIsRepeatedSendsNothing() async throws {
    let desk = try await Desk()
    let script = Script(.status(201))
    #expect(try await desk.run(desk.queue(script), ["a", "b"]).sent == 2)
    #expect(try await desk.run(desk.queue(script), ["a", "b"]).doneBefore == 2)
    #expect(script.requests.count == 2)
  }

  @Test func theConcurrencyIsKeptByHost() async throws {
    let desk = try await Desk()
    let first = Learner(Script(.status(201)), LearnedConcurrency(width: 24))
    _ = try await desk.run(desk.queue(first), ["a"])
    #expect(first.expected == nil)
    let second = Learner(Script(.status(201)), nil)
    _ = try await desk.run(desk.queue(second), ["b"])
    #expect(second.expected == LearnedConcurrency(width: 24))
  }

  /// Small items, which mostly wait for responses, do not queue behind large ones.
  @Test func smallOnesComeFirst() async throws {
    let desk = try await Desk()
    let script = Script(.status(201))
    var queue = desk.queue(script)
    (queue.jobs, queue.largeFrom) = (1, 5)
    try await desk.run(queue, ["film", "1"], lengths: [6, 5])
    #expect(script.requests.map(\.url.path) == ["1", "film"].map { host.path + $0 })
  }

  @Test func aGateThatIsMadeWiderLetsMoreIn() async {
    let gate = Gate(1)
    let exit = Gate(0)
    let (entered, entry) = AsyncStream<Int>.makeStream()
    let tasks = (0..<6).map { number in
      Task {
        await gate.pass {
          entry.yield(number)
          await exit.pass {}
        }
      }
    }
    var entries = entered.makeAsyncIterator()
    _ = await entries.next()
    gate.widen(to: 3)
    _ = await entries.next()
    _ = await entries.next()
    gate.widen(to: 1)
    exit.widen(to: 6)
    for _ in 3..<6 { _ = await entries.next() }
    for task in tasks { await task.value }
  }

  @Test func checkingSendsAgainWhatTheServerLost() async throws {
    let desk = try await Desk()
    _ = try await desk.run(desk.queue(Script(.status(201))), ["kept", "lost"])
    let script = Script { _, request throws(TransportError) in
      if request.method == "PUT" { return .status(201) }
      return request.url.path.hasSuffix("kept") ? .status(200, ["Content-Length": "1000"]) : .status(404)
    }
    var queue = desk.queue(script)
    queue.check = true
    let outcomes = try await desk.run(queue, ["kept", "lost"])
    #expect(outcomes.doneBefore == 1 && outcomes.sent == 1)
    #expect(script.methods.sorted() == ["HEAD", "HEAD", "PUT"])
  }

  /// The file has the same length and other bytes: only reading it back detects this.
  @Test(arguments: [false, true]) func checkingAndVerifyingFindsOtherBytes(_ overwrites: Bool) async throws {
    let desk = try await Desk()
    let peer = try ServedFolder()
    defer { peer.stop() }
    let put = UploadDestination(
      endpoint: peer.endpoint, uploadProtocol: PlainPut(), limits: PartLimits(firstPart: .max))
    var queue = desk.queue(SocketTransport())
    queue.uploader.destination = put
    #expect(try await desk.run(queue, ["same", "other"]).sent == 2)
    _ = try await Uploader(put, transport: SocketTransport()).upload(
      PatternSource(length: 1000, seed: 1), as: "other", overwrite: true)
    queue.check = true
    #expect(try await desk.run(queue, ["same", "other"]).doneBefore == 2)
    queue.verify = true
    let outcomes = try await desk.run(queue, ["same", "other"], overwrite: overwrites)
    #expect(outcomes.doneBefore == 1)
    if overwrites {
      #expect(outcomes.sent == 1 && peer.contents(of: "other") == PatternSource(length: 1000).bytes(count: 1000))
    } else {
      #expect(outcomes.error("other")?.status == 409)
    }
  }

  @Test func checkingOutlastsABrokenConnection() async throws {
    let desk = try await Desk()
    _ = try await desk.run(desk.queue(Script(.status(201))), ["a"])
    var queue = desk.queue(
      Script { number, _ throws(TransportError) in
        if number == 0 { throw TransportError(.broken, "the connection broke") }
        return .status(200, ["Content-Length": "1000"])
      })
    queue.check = true
    #expect(try await desk.run(queue, ["a"]).doneBefore == 1)
  }

  @Test func theSessionIsKeptBeforeItsFirstByteIsSent() async throws {
    let desk = try await Desk()
    let seen = Mutex<[JournalEntry]>([])
    let transport = CountingTransport(Script(.created, .at(1000))) { [journal = desk.journal] request in
      guard request.method == "PATCH" else { return }
      let entries = (try? await journal.unfinished()) ?? []
      seen.withLock { $0 = entries }
    }
    #expect(try await desk.run(desk.queue(transport, Tus()), ["a"]).sent == 1)
    let entry = try #require(seen.withLock { $0 }.first)
    #expect(entry.session?.state["url"] == "http://media.example/up/1")
    #expect(entry.state == .open)
  }

  /// The server is queried once for its offset, and the rest is sent, with either protocol.
  @Test(arguments: ["tus", "resumable"]) func resumingInTheNextRunTakesOneRequest(_ name: String) async throws {
    let desk = try await Desk()
    let uploadProtocol: any UploadProtocol = name == "tus" ? Tus() : IETFResumable()
    let open: HTTPHeaders = ["Location": "/up/1", "Upload-Offset": "0", "Upload-Complete": "?0"]
    _ = try await desk.run(desk.queue(Script(.status(201, open), .status(413)), uploadProtocol), ["a"])
    let script = Script(
      .status(204, ["Upload-Offset": "400", "Upload-Complete": "?0"]),
      .status(204, ["Upload-Offset": "1000", "Upload-Complete": "?1"]))
    #expect(try await desk.run(desk.queue(script, uploadProtocol), ["a"]).sent == 1)
    #expect(script.methods == ["HEAD", "PATCH"])
    #expect(script.requests[1].headers["Upload-Offset"] == "400")
  }

  @Test func anotherVersionReplacesAndItsOldSessionIsDeleted() async throws {
    let desk = try await Desk()
    let first = try await desk.run(desk.queue(Script(.created, .status(413)), Tus()), ["a"])
    #expect(first.error("a")?.status == 413)
    let script = Script(.at(0, of: 1000), .status(204), .created, .at(1000))
    #expect(try await desk.run(desk.queue(script, Tus()), ["a"], seed: 2).sent == 1)
    #expect(script.methods == ["HEAD", "DELETE", "POST", "PATCH"])
    #expect(script.requests[1].url.text == "http://media.example/up/1")
  }

  @Test func anOldSessionOfAnotherProtocolIsLeftAlone() async throws {
    let desk = try await Desk()
    _ = try await desk.run(desk.queue(Script(.created, .status(413)), Tus()), ["a"])
    let script = Script(.status(201))
    #expect(try await desk.run(desk.queue(script), ["a"], seed: 2).sent == 1)
    #expect(script.methods == ["PUT"])
  }

  @Test func anUnfinishedUploadGoesOnInTheNextRun() async throws {
    let desk = try await Desk()
    _ = try await desk.run(desk.queue(Script(.created, .at(300), .status(413)), Tus(), partSize: 300), ["a"])
    let script = Script(.at(300, of: 1000), .at(1000))
    let outcomes = try await desk.run(desk.queue(script, Tus()), ["a"])
    #expect(script.methods == ["HEAD", "PATCH"])
    guard case .sent(_, from: 300) = outcomes["a"] else {
      Issue.record("\(outcomes["a"] as Any)")
      return
    }
  }

  @Test func aRefusalOfTheDestinationEndsTheQueue() async throws {
    let desk = try await Desk()
    let script = Script(.status(401))
    var queue = desk.queue(script)
    queue.jobs = 2
    let names = (0..<200).map { "\($0)" }
    let error = await #expect(throws: UploadError.self) { try await desk.run(queue, names) }
    #expect(error?.status == 401 && error?.side == .destination)
    #expect(script.requests.count <= 2)
    // Items that were claimed and not started are released.
    #expect(try await desk.run(desk.queue(Script(.status(201))), names).sent == 200)
  }

  @Test func anUnreachablePlaceEndsTheQueueSoon() async throws {
    let desk = try await Desk()
    let script = Script { _, _ throws(TransportError) in throw TransportError(.connect, "nobody listens") }
    var queue = desk.queue(script)
    queue.jobs = 4
    queue.uploader.retry = RetryPolicy()
    let error = await #expect(throws: UploadError.self) { try await desk.run(queue, (0..<100).map { "\($0)" }) }
    #expect(error?.isUnreachable == true && error?.side == .destination)
    #expect(script.requests.count <= 8)
  }

  @Test(arguments: [TransportError.Code.broken, .timeout, .badResponse])
  func oneFileThatRunsOutOfRetriesStopsNoOther(_ code: TransportError.Code) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      if request.url.path.hasSuffix("/7") || request.url.path.hasSuffix("/8") {
        throw TransportError(code, "no answer")
      }
      return .status(201)
    }
    var queue = desk.queue(script)
    queue.uploader.retry.retries = 2
    let outcomes = try await desk.run(queue, (0..<50).map { "\($0)" })
    #expect(outcomes.sent == 48)
    #expect(outcomes.error("7")?.message == "no answer (gave up after 3 failures in a row)")
    #expect(outcomes.error("8")?.side == .file)
  }

  @Test(arguments: [nil, 503]) func severalFilesThatRunOutOfRetriesEndTheQueue(_ status: Int?) async throws {
    let desk = try await Desk()
    let script = Script { number, _ throws(TransportError) in
      if let status { return .status(status) }
      if number == 0 { return .status(500) }
      throw TransportError(.timeout, "no answer")
    }
    var queue = desk.queue(script)
    queue.uploader.retry.retries = 1
    queue.jobs = 2
    let error = await #expect(throws: UploadError.self) { try await desk.run(queue, (0..<100).map { "\($0)" }) }
    #expect(error?.side == .destination)
    // One more file may have failed before the queue ends.
    #expect(
      error?.message.contains(/[34] files in a row came to nothing, so the rest is not tried/) == true, "\(error!)")
    #expect(script.requests.count <= 8)
  }

  @Test func theQueueEndsIfTheServerStopsAnswering() async throws {
    let desk = try await Desk()
    let script = Script { number, _ throws(TransportError) in
      if number < 20 { return .status(201) }
      throw TransportError(.broken, "no answer")
    }
    var queue = desk.queue(script)
    queue.uploader.retry.retries = 0
    queue.jobs = 2
    let error = await #expect(throws: UploadError.self) { try await desk.run(queue, (0..<100).map { "\($0)" }) }
    // One more file may have failed before the queue ends.
    #expect(error?.message.contains(/1[2-9] files in a row came to nothing/) == true, "\(error!)")
    #expect(script.requests.count <= 34)
  }

  @Test(arguments: [409, 413, 500]) func oneFileThatFailsStopsNoOther(_ status: Int) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      request.url.path.hasSuffix("/7") ? .status(status) : .status(201)
    }
    let outcomes = try await desk.run(desk.queue(script), (0..<50).map { "\($0)" })
    #expect(outcomes.sent == 49)
    #expect(outcomes.error("7")?.status == status)
    let failed = try await desk.journal.entries(.failed, limit: 10)
    #expect(failed.map(\.intent.path) == ["7"])
    #expect(failed.first?.error == outcomes.error("7")?.message)
  }
}

/// A transport with a learned width, which also records the expected width.
final class Learner: AdaptiveTransport {
  private let transport: any Transport
  private let heard = Mutex<LearnedConcurrency?>(nil)
  let learned: LearnedConcurrency?
  var adapts: Bool { true }
  var expected: LearnedConcurrency? { heard.withLock { $0 } }

  init(_ transport: any Transport, _ learned: LearnedConcurrency?) {
    self.transport = transport
    self.learned = learned
  }

  func expect(_ learned: LearnedConcurrency) { heard.withLock { $0 = learned } }
  func expect(bodiesAt url: HTTPURL, atMost count: Int) {}
  func follow(_ follower: @escaping @Sendable (Int) -> Void) { follower(4) }
  func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse { try await transport.send(request, body: body, on) }
}
