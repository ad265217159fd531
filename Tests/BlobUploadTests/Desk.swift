import BlobHTTP
import BlobTesting
import Blobs
import Synchronization

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
