import BlobHTTP
import Blobs
import Synchronization

/// One exchange under way: who waits for the response, and which thread may deliver it.
///
/// `phase` decides every race between the worker and a cancellation, so that the waiter is called exactly once.
final class QueuedExchange: Sendable {
  private enum Phase: UInt8, AtomicRepresentable {
    /// Not submitted yet, or waiting for a worker.
    case new, queued
    /// On a worker that will check the phase soon.
    case running
    /// In code that may block for ever: the source, or the receiver of the response's content.
    case outside
    /// Cancelled in `outside`: the call was told to return, and has a moment for it.
    case leaving
    /// The worker was woken up to stop.
    case cancelling
    /// Cancelled in `outside`: the waiter has continued, and the worker ends when the call returns.
    case abandoned
    case done
  }
  typealias Answer = Result<HTTPResponse, TransportError>

  /// The caller that waits for the response, and the worker that sends the request. It is a struct because each access
  /// to a closure in a generic tuple would wrap the closure once more.
  private struct Place {
    var waiter: (@Sendable (Answer) -> Void)?
    var inbox: WorkerInbox?
  }

  let request: HTTPRequest
  let body: BlobSlice?
  /// The bytes of the body that the rate limit has granted; nil: there is no limit.
  let grant: RateGrant?
  let exchange: Exchange
  /// The worker makes a connection and sends no request.
  let onlyConnects: Bool
  /// The bytes for which the body counts in the pool's `bytesUnderWay`. Written under the pool's lock.
  private let share: Atomic<Int64>
  /// Cancels reads from the source.
  let cancellation = Cancellation()
  let pool: ConnectionPool
  private let phase = Atomic<Phase>(.new)
  private let place = Mutex(Place())

  init(_ request: HTTPRequest, _ body: BlobSlice?, _ exchange: Exchange, in pool: ConnectionPool) {
    self.request = request
    grant = body == nil ? nil : pool.options.limiter.map { RateGrant($0) }
    self.body = body?.throttled(by: grant)
    self.exchange = exchange
    self.pool = pool
    onlyConnects = false
    share = Atomic(min(body?.length ?? 0, ConcurrencyController.mostCounted))
  }

  /// An exchange that only makes a connection for later requests.
  init(connectingTo url: HTTPURL, in pool: ConnectionPool) {
    request = HTTPRequest("OPTIONS", url)
    (body, grant) = (nil, nil)
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
        place.withLock { $0.inbox }?.alarm.raise()
        return
      case .outside:
        guard move(.outside, .leaving) else { continue }
        cancellation.cancel()
        // Unstructured, because the waiter must continue even if the call never returns.
        Task {
          try? await Task.sleep(for: Self.patience)  // nothing cancels this task
          self.abandon()
        }
        return
      case .leaving, .cancelling, .abandoned, .done: return
      }
    }
  }

  /// How long a call that was cancelled has to return. Most return at once; then the worker still receives what the
  /// server has sent, such as the URL of the upload.
  private static let patience = Duration.milliseconds(50)

  /// The waiter continues without the worker, unless the worker has returned.
  private func abandon() {
    guard move(.leaving, .abandoned) else { return }
    let inbox = place.withLock { $0.inbox }
    resume(.failure(cancelled("while the source was read")))
    if let inbox { pool.abandon(inbox, self) }
  }

  // MARK: Called by the worker

  /// false: the exchange was cancelled while it waited.
  func begin(on inbox: WorkerInbox) -> Bool {
    place.withLock { $0.inbox = inbox }
    return move(.queued, .running)
  }

  /// Called before a call that may block. false: the exchange was cancelled, and the call must not be made.
  func leave() -> Bool { move(.running, .outside) }

  /// Called after such a call. false: the exchange was cancelled meanwhile.
  func enter() -> Bool {
    if move(.outside, .running) { return true }
    // From here on, the worker is not abandoned any more, unless it already was.
    _ = move(.leaving, .cancelling)
    return false
  }

  /// The worker must stop this exchange.
  var isCancelled: Bool {
    let now = phase.load(ordering: .relaxed)
    return now == .cancelling || now == .leaving || now == .abandoned
  }

  /// The worker must stop this exchange, and the waiter still waits for it.
  var isStopping: Bool { phase.load(ordering: .relaxed) == .cancelling }

  /// The exchange is over, and `resume` is called next. false: the worker was abandoned and must end without calling
  /// `resume`.
  func settle() -> Bool { phase.exchange(.done, ordering: .acquiringAndReleasing) != .abandoned }

  func cancelled(_ when: String) -> TransportError { TransportError(.cancelled, "\(name): cancelled \(when)") }

  /// Method and URL, for messages.
  var name: String { "\(request.method) \(request.url)" }

  private func move(_ from: Phase, _ to: Phase) -> Bool {
    phase.compareExchange(expected: from, desired: to, ordering: .acquiringAndReleasing).exchanged
  }

  /// Delivers the result to the waiter. Called once, by the thread that has won the change of phase.
  func resume(_ answer: Answer) {
    let waiter = place.withLock { place in
      defer { place = Place() }
      return place.waiter
    }
    waiter!(answer)
  }
}

extension BlobSlice {
  /// The same range with limited speed. Only sending is throttled: other reads of the source are not.
  fileprivate func throttled(by grant: RateGrant?) -> BlobSlice {
    guard let grant else { return self }
    var slice = self
    slice.source = ThrottledSource(source, grant)
    return slice
  }
}
