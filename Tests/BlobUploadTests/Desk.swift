import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// A temporary journal, and queues that write to it.
final class Desk: Sendable {
  let journal: Journal
  private let folder: ScratchFolder

  init() async throws {
    folder = try ScratchFolder()
    journal = try await Journal(at: folder.path.appending("journal"))
  }

  func queue(
    _ transport: any Transport, _ uploadProtocol: any UploadProtocol = PlainPut(), partSize: Int64? = nil,
    knowsHost: Bool = true
  ) -> UploadQueue {
    var uploader = uploader(uploadProtocol, transport, partSize: partSize, knowsHost: knowsHost)
    uploader.journal = journal
    return UploadQueue(uploader, journal: journal, destinationID: 0)
  }

  /// Uploads `a` twice. The first run is cut in its first PATCH, and the server then does not say how much it has. `answer` has
  /// the responses of the second run, except to POST. Returns its outcome and the methods of its requests.
  func runAfterCut(
    _ name: String, length: Int64 = 1000, partSize: Int64? = nil, seed: UInt64 = 0,
    _ answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse
  ) async throws -> (Outcomes, [String]) {
    let isFirstRun = Monitor(true)
    let script = Script { _, request throws(TransportError) in
      if request.method == "POST" { return .emptyCreation(name) }
      if !isFirstRun.update({ $0 }) { return answer(request) }
      if request.method == "PATCH" { throw TransportError(.broken, "the connection broke") }
      return .status(503)
    }
    let queue = queue(
      script, name == "tus" ? Tus(wholeUpTo: 0) : IETFResumable(wholeUpTo: 0), partSize: partSize)
    let first = try await run(queue, ["a"], length: length)
    #expect(first.error("a") != nil)
    isFirstRun.update { $0 = false }
    let count = script.methods.count
    let outcome = try await run(queue, ["a"], length: length, seed: seed)
    return (outcome, Array(script.methods.dropFirst(count)))
  }

  @discardableResult
  func run(
    _ queue: UploadQueue, _ names: [String], _ observer: (any UploadObserver)? = nil, length: Int64 = 1000,
    lengths: [Int64]? = nil, seed: UInt64 = 0, overwrite: Bool = false
  ) async throws(UploadError) -> Outcomes {
    var queue = queue
    do {
      queue.destinationID = try await journal.destinationID(
        JournalDestination(endpoint: host.text, protocolName: queue.uploader.destination.uploadProtocol.name))
    } catch {
      throw UploadError(journal: error)
    }
    let destination = queue.uploader.destination
    let items = names.enumerated().map { index, name in
      let length = lengths?[index] ?? length
      let source = PatternSource(length: length, seed: seed)
      return UploadItem(
        source: source, info: source.info, identity: BytePath("/card/\(name)"),
        target: destination.target(BytePath(name), length: length, overwrite: overwrite))
    }
    let left = Mutex(items[...])
    let outcomes = Outcomes(also: observer)
    try await queue.run(
      {
        left.withLock { left in
          defer { left = left.dropFirst(128) }
          return left.isEmpty ? nil : Array(left.prefix(128))
        }
      }, outcomes)
    return outcomes
  }
}

/// Counts running requests. With `stalls` each request runs until it is cancelled; with `gathers` each waits until that
/// many requests were started.
final class Gauge: Transport {
  private let state = Mutex<(now: Int, most: Int)>((0, 0))
  private let stalls: Bool
  private let gathers: Int
  private let (entered, entry) = AsyncStream<Int>.makeStream()

  init(stalls: Bool = false, gathers: Int = 0) {
    self.stalls = stalls
    self.gathers = gathers
  }

  var now: Int { state.withLock { $0.now } }
  var most: Int { state.withLock { $0.most } }

  func reach(_ count: Int) async { for await now in entered where now >= count { return } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let now = state.withLock { state in
      state.now += 1
      state.most = max(state.most, state.now)
      return state.now
    }
    entry.yield(now)
    defer { state.withLock { $0.now -= 1 } }
    do {
      if stalls { try await Task.sleep(for: .seconds(3600)) }
      let deadline = ContinuousClock.now + .seconds(30)
      while most < gathers && .now < deadline { try await Task.sleep(for: .milliseconds(1)) }
      for _ in 0..<20 { await Task.yield() }
    } catch {
      throw TransportError(.cancelled, "cancelled")
    }
    on.sent(Int(body?.length ?? 0))
    return .status(201)
  }
}

extension UploadQueue {
  /// Claims items as a run of the queue does.
  func claim(_ items: [UploadItem]) async throws(UploadError) -> [ClaimedItem] {
    let destination = QueueDestination(uploader, journal, destinationID)
    return try await ItemClaims(destination: destination, replacesGrown: replacesGrown).claim(items)
  }
}
