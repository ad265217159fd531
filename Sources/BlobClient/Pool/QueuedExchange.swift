import BlobHTTP
import Blobs
import Synchronization

/// One exchange on its way: who waits for the answer, and which thread may give it.
///
/// `phase` decides every race between the worker and a cancellation, so that the waiter is called exactly once.
final class QueuedExchange: Sendable {
  private enum Phase: UInt8, AtomicRepresentable {
    /// Not handed in yet, or waiting for a worker.
    case new, queued
    /// On a worker that will look at the phase soon.
    case running
    /// In code that may block for ever: the source, or who takes the answer's content.
    case outside
    /// The worker was woken to give up.
    case cancelling
    /// Cancelled while outside: the waiter has gone on, and the worker ends when the call returns.
    case abandoned
    case done
  }
  typealias Answer = Result<HTTPResponse, TransportError>

  /// The caller that waits for the answer, and the worker that sends the request. A struct and no tuple: each access to a closure in a generic
  /// tuple would wrap it once more.
  private struct Place {
    var waiter: (@Sendable (Answer) -> Void)?
    var door: WorkerInbox?
  }

  let request: HTTPRequest
  let body: BlobSlice?
  let exchange: Exchange
  /// Its worker makes a connection, and no more.
  let onlyConnects: Bool
  /// With how many bytes it counts among those under way. Written under the pool's lock.
  private let share: Atomic<Int64>
  /// For the source.
  let cancellation = Cancellation()
  private let pool: ConnectionPool
  private let phase = Atomic<Phase>(.new)
  private let place = Mutex(Place())

  init(_ request: HTTPRequest, _ body: BlobSlice?, _ exchange: Exchange, in pool: ConnectionPool) {
    self.request = request
    self.body = body?.throttled(by: pool.options.limiter)
    self.exchange = exchange
    self.pool = pool
    onlyConnects = false
    share = Atomic(min(body?.length ?? 0, ConcurrencyController.mostCounted))
  }

  /// A connection for what comes later.
  init(connectingTo url: HTTPURL, in pool: ConnectionPool) {
    request = HTTPRequest("OPTIONS", url)
    body = nil
    exchange = Exchange()
    self.pool = pool
    onlyConnects = true
    share = Atomic(0)
  }

  var counted: Int64 {
    get { share.load(ordering: .relaxed) }
    set { share.store(newValue, ordering: .relaxed) }
  }

  func start(_ waiter: @escaping @Sendable (Answer) -> Void) {
    place.withLock { $0.waiter = waiter }
    if move(.new, .queued) { pool.submit(self) } else { resume(.failure(cancelled("before it was sent"))) }
  }

  func cancel() {
    while true {
      switch phase.load(ordering: .acquiring) {
      case .new:
        if move(.new, .done) { return }
      case .queued:
        guard move(.queued, .done) else { continue }
        pool.remove(self)
        return resume(.failure(cancelled("while it waited for its turn")))
      case .running:
        guard move(.running, .cancelling) else { continue }
        cancellation.cancel()
        place.withLock { $0.door }?.alarm.raise()
        return
      case .outside:
        guard move(.outside, .abandoned) else { continue }
        let door = place.withLock { $0.door }
        resume(.failure(cancelled("while the source was read")))
        cancellation.cancel()
        if let door { pool.abandon(door, self) }
        return
      case .cancelling, .abandoned, .done: return
      }
    }
  }

  // MARK: The worker's side

  /// false when it was cancelled while it waited.
  func begin(on door: WorkerInbox) -> Bool {
    place.withLock { $0.door = door }
    return move(.queued, .running)
  }

  /// Before a call that may block. false: cancelled, do not make it.
  func leave() -> Bool { move(.running, .outside) }

  /// After such a call. false: the worker was abandoned meanwhile.
  func enter() -> Bool { move(.outside, .running) }

  /// The worker is to stop this exchange, at once or after a failed `enter`.
  var isCancelled: Bool {
    let now = phase.load(ordering: .relaxed)
    return now == .cancelling || now == .abandoned
  }

  /// The exchange is over, and `resume` comes next. false: nobody waits any more, and the worker is to end.
  func settle() -> Bool { phase.exchange(.done, ordering: .acquiringAndReleasing) != .abandoned }

  func cancelled(_ when: String) -> TransportError { TransportError(.cancelled, "\(name): cancelled \(when)") }

  /// For messages.
  var name: String { "\(request.method) \(request.url)" }

  private func move(_ from: Phase, _ to: Phase) -> Bool {
    phase.compareExchange(expected: from, desired: to, ordering: .acquiringAndReleasing).exchanged
  }

  /// Gives the answer to who waits; once, after the phase was won.
  func resume(_ answer: Answer) {
    let waiter = place.withLock { place in
      defer { place = Place() }
      return place.waiter
    }
    waiter!(answer)
  }
}

extension BlobSlice {
  /// The same range, read as it is sent: what is read of a source for another reason is not slowed down.
  fileprivate func throttled(by limiter: RateLimiter?) -> BlobSlice {
    guard let limiter else { return self }
    var slice = self
    slice.source = ThrottledSource(source, limiter)
    return slice
  }
}
