import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests small files that need one request each.
@Suite struct SmallFileTests {
  let names = (0..<300).map { "\($0)" }

  @Test func eachIsSentOnceAndKept() async throws {
    let desk = try await Desk()
    let script = Script(.status(201))
    let queue = desk.queue(script)
    #expect(try await desk.run(queue, names).sent == 300)
    #expect(script.requests.count == 300)
    #expect(queue.totals.sent == 300_000 && queue.totals.acknowledged == 300_000)
    let sum = try await desk.journal.summary()
    #expect(sum.map(\.state) == [.done] && sum.map(\.count) == [300] && sum.map(\.bytes) == [300_000])
    #expect(try await desk.run(queue, names).doneBefore == 300)
    #expect(script.requests.count == 300)
  }

  @Test(arguments: [503, nil]) func aFailedSmallFileIsSentAgainAfterADelay(_ status: Int?) async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in
      guard number == 7 else { return .status(201) }
      guard let status else { throw TransportError(.broken, "the connection broke") }
      return .status(status, ["Retry-After": "5"])
    }
    var queue = desk.queue(script)
    let clock = LeapingClock()
    queue.uploader.clock = clock
    let watcher = Watcher()
    #expect(try await desk.run(queue, names, watcher).sent == 300)
    #expect(script.requests.count == 301)
    #expect(clock.waits.count == 1 && (status == nil || clock.waits == [.seconds(5)]))
    #expect(watcher.started == Dictionary(uniqueKeysWithValues: names.map { ($0, 1) }))
  }

  @Test func aRefusalIsOneFilesOwn() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      request.url.path.hasSuffix("/7") ? .status(413) : .status(201)
    }
    let queue = desk.queue(script)
    let outcomes = try await desk.run(queue, names)
    #expect(outcomes.sent == 299 && outcomes.error("7")?.status == 413)
    #expect(queue.totals.sent == 300_000 && queue.totals.acknowledged == 299_000)
    #expect(script.requests.count == 300)
    #expect(try await desk.journal.entries(.failed, limit: 9).map(\.intent.path) == ["7"])
  }

  @Test func aRedirectIsFollowedAndCountedOnce() async throws {
    let desk = try await Desk()
    let script = Script { number, _ throws(TransportError) in
      number == 0 ? .status(307, ["Location": "/other/a"]) : .status(201)
    }
    let watcher = Watcher()
    let queue = desk.queue(script)
    queue.uploader.destination.acquaintance.putAnswers.trust(folderOf: HTTPURL("http://media.example/other/")!)
    #expect(try await desk.run(queue, ["a"], watcher).sent == 1)
    #expect(script.requests.map(\.url.path) == ["/in/a", "/other/a"])
    #expect(watcher.progress["a"]?.sent == 1000 && watcher.progress["a"]?.acknowledged == 1000)
  }

  @Test func overwritingANewNameIsTriedAgainWithoutIfMatch() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      .status(request.method == "HEAD" ? 405 : request.headers["If-Match"] == nil ? 201 : 412)
    }
    #expect(try await desk.run(desk.queue(script), ["a"], overwrite: true).sent == 1)
    #expect(script.requests.filter { $0.method == "PUT" }.map { $0.headers["If-Match"] } == ["*", nil])
  }

  @Test func credentialsGoWithEach() async throws {
    let desk = try await Desk()
    let script = Script(.status(201))
    var queue = desk.queue(script)
    queue.uploader.destination.headers = ["x-api-key": "secret"]
    try await desk.run(queue, ["a", "b"])
    #expect(script.requests.map { $0.headers["x-api-key"] } == ["secret", "secret"])
  }

  @Test func aRefusalOfTheDestinationEndsTheQueue() async throws {
    let desk = try await Desk()
    let script = Script(.status(401))
    var queue = desk.queue(script)
    queue.jobs = 2
    let error = await #expect(throws: UploadError.self) { try await desk.run(queue, names) }
    #expect(error?.status == 401 && error?.side == .destination)
    #expect(script.requests.count <= 2)
    #expect(try await desk.run(desk.queue(Script(.status(201))), names).sent == 300)
  }

  @Test func cancellingEndsEverythingAndGivesTheClaimsBack() async throws {
    let desk = try await Desk()
    let gauge = Gauge(stalls: true)
    let queue = desk.queue(gauge)
    let task = Task { try await desk.run(queue, names) }  // ends below
    await gauge.reach(64)
    task.cancel()
    let error = await #expect(throws: UploadError.self) { _ = try await task.value }
    #expect(error?.side == .cancelled)
    #expect(gauge.now == 0)
    #expect(try await desk.run(desk.queue(Script(.status(201))), names).sent == 300)
  }

  /// A queue for tus, with a server that accepts a file in the request that creates the upload.
  private func tus(_ desk: Desk, _ transport: any Transport, _ uploadProtocol: Tus = Tus(), upTo most: Int64 = 4 << 20)
    -> UploadQueue
  {
    var queue = desk.queue(transport, uploadProtocol)
    queue.uploader.destination.limits.firstPart = most
    return queue
  }

  @Test func tusBringsAFileWithItsCreation() async throws {
    let desk = try await Desk()
    let script = Script(.status(201, ["Location": "/up/1", "Upload-Offset": "1000"]))
    let queue = tus(desk, script)
    #expect(try await desk.run(queue, names).sent == 300)
    #expect(script.requests.count == 300)
    #expect(script.requests.allSatisfy { $0.method == "POST" && $0.headers["Upload-Length"] == "1000" })
    #expect(script.requests.allSatisfy { $0.headers["Content-Type"] == "application/offset+octet-stream" })
    #expect(queue.totals.sent == 300_000 && queue.totals.acknowledged == 300_000)
    let entry = try #require(try await desk.journal.entries(.done, limit: 1).first)
    #expect(entry.location == "http://media.example/up/1", "\(entry)")
  }

  /// The server has stored a part of the file, does not report how much, or reports another success than 201.
  @Test(arguments: ["400", nil]) func tusContinuesAtTheOffsetThatTheServerStored(_ offset: String?) async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in
      switch request.method {
      case "POST": .status(201, offset.map { ["Location": "/up/1", "Upload-Offset": $0] } ?? ["Location": "/up/1"])
      case "HEAD": .at(400, of: 1000)
      default: .at(1000)
      }
    }
    let watcher = Watcher()
    #expect(try await desk.run(tus(desk, script), ["a"], watcher).sent == 1)
    #expect(script.methods == (offset == nil ? ["POST", "HEAD", "PATCH"] : ["POST", "PATCH"]))
    #expect(script.requests.last?.headers["Upload-Offset"] == "400")
    #expect(watcher.progress["a"]?.acknowledged == 1000)
  }

  @Test func aCreationAnsweredWith200EndsWithAnError() async throws {
    let desk = try await Desk()
    let script = Script(.status(200, ["Location": "/up/1", "Upload-Offset": "1000"]))
    let error = await #expect(throws: UploadError.self) { try await desk.run(tus(desk, script), ["a"]) }
    #expect(error?.message.contains("instead of 201") == true)
    #expect(script.requests.count == 1)
  }
}

/// Counts how often each item was started, and records its progress.
private final class Watcher: UploadObserver {
  private let state = Mutex<(started: [String: Int], progress: [String: UploadProgress])>(([:], [:]))

  var started: [String: Int] { state.withLock { $0.started } }
  var progress: [String: UploadProgress] { state.withLock { $0.progress } }

  func started(_ item: UploadItem, _ progress: UploadProgress) {
    state.withLock { $0.started["\(item.target.path)", default: 0] += 1 }
  }

  func ended(_ item: UploadItem, _ progress: UploadProgress?, _ outcome: UploadOutcome) {
    state.withLock { $0.progress["\(item.target.path)"] = progress }
  }
}
