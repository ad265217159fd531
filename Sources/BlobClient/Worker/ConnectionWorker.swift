import BlobHTTP
import Blobs
import CCurl

/// One thread with a persistent connection. It performs one exchange after the other.
///
/// Created, used and freed on its own thread.
final class ConnectionWorker {
  let pool: ConnectionPool
  let inbox: WorkerInbox
  var options: SocketTransport.Options { pool.options }
  /// The buffer from which heads and small bodies are sent together. Borrowed from the pool, or allocated for an
  /// unusually long head.
  var small = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Header lines that all requests to the last request's server have in common.
  var standing: (url: HTTPURL, lines: [(name: String, line: String)])?
  /// Bytes of the pool's budget that the current exchange uses.
  var takenBuffer = 0
  /// The connection, while no exchange uses it.
  var kept: IdleConnection?
  /// The failure of a connection that was made ahead of its requests; the message lacks the name of a request.
  var failedAhead: (url: HTTPURL, since: SuspendingClock.Instant, error: TransportError)?
  /// Received bytes of a response. Allocated for the first response.
  var responseBuffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Buffer for a body that is read before it is sent. Allocated for the first body that needs it.
  var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// The current exchange.
  var transfer: Transfer?
  /// Runs the tasks that continue on this thread with their responses.
  private let ready = ReadyTasks()

  init(_ pool: ConnectionPool, _ inbox: WorkerInbox) {
    self.pool = pool
    self.inbox = inbox
  }

  deinit {
    letGo()
    responseBuffer.deallocate()
    giveBackSmall()
    piece.deallocate()
  }

  /// Works until the transport is closed or this worker is abandoned. While it waits it retains nothing of the last
  /// exchange: the source's files are closed, and the exchange's closures are released.
  func run() {
    var next = nextJob()
    while let end = next.take().map(work) {
      switch end {
      case .abandoned: return
      case .further(let job): next = job
      case .idle: next = nextJob()
      }
    }
  }

  private func nextJob() -> QueuedExchange? {
    inbox.wait(atMost: Self.shortest, thenCall: rest, checking: { checkIdle() }, closing: letGo)
  }

  /// After less idle time, a worker keeps its buffers: usually the next request follows the last response at once.
  private static let shortest = Duration.milliseconds(5)

  private enum End { case further(QueuedExchange), idle, abandoned }

  /// Frees the large buffers of an idle worker, which the pool no longer counts. Its connection has nothing to send, and
  /// is closed in the ordinary way from now on.
  private func rest() {
    checkIdle()
    kept?.discards(false)
    if case .sealed(let channel)? = kept?.wire { channel.rest() }
    giveBackSmall()
    piece.deallocate()
    piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  private func work(on job: QueuedExchange) -> End {
    guard job.begin(on: inbox) else {
      return pool.next(for: inbox, after: job, ExchangeOutcome(), kept: kept?.url).map { .further($0) } ?? .idle
    }
    let (answer, outcome) = exchange(job)
    guard job.settle() else { return .abandoned }
    // The worker becomes idle before the caller gets the response, so that its next request finds this worker and its
    // connection.
    if let kept, pool.stalls.take(at: kept.url) { letGo() }
    let waiting = pool.next(for: inbox, after: job, outcome, kept: kept?.url)
    ready.run { job.resume(answer) }
    return waiting.map { .further($0) } ?? .idle
  }

  private func exchange(_ job: QueuedExchange) -> (QueuedExchange.Answer, ExchangeOutcome) {
    let transfer = Transfer(job)
    self.transfer = transfer
    defer {
      self.transfer = nil
      // The thread that reads ahead may be blocked in the source.
      if transfer.body.isReadAhead { job.cancellation.cancel() }
    }
    if let failure = prepare(transfer) { return (.failure(failure), ExchangeOutcome()) }
    if job.body == nil || !pool.isLearning { return (exchange(transfer), ExchangeOutcome()) }
    transfer.times = ExchangeTimes(at: MonotonicClock().now)
    let answer = exchange(transfer)
    return (answer, transfer.times!.outcome(of: transfer, answer, at: MonotonicClock().now))
  }

  private func exchange(_ transfer: Transfer) -> QueuedExchange.Answer {
    do throws(TransportError) {
      let proxy = try pool.proxies.proxy(for: transfer.job.request.url)
      if transfer.job.onlyConnects {
        try connectAhead(transfer, through: proxy)
        return .success(HTTPResponse(head: HTTPHead(status: 0, headers: [:]), body: []))
      }
      try openBody(transfer)
      if let body = transfer.job.body, body.length == nil { pool.counts(transfer.job, transfer.body.length) }
      return .success(try answer(transfer, through: proxy))
    } catch {
      // An error response that came before the whole body was sent counts, even if its rest does not arrive.
      if error.code == .timeout, !transfer.body.isSent, let head = transfer.response.head.final {
        return .success(HTTPResponse(head: head, body: transfer.response.content))
      }
      return .failure(error)
    }
  }

  /// Reports how many bytes of the body this attempt has handed to the connection.
  func report(_ transfer: Transfer, handedOver sent: Int64) {
    let new = transfer.body.noteHanded(sent)
    if new == 0 { return }
    transfer.job.exchange.sent(new)
    if let piece = transfer.times?.piece(sent: sent) { pool.passed(piece) }
  }

  func cancelled(_ transfer: Transfer) -> TransportError {
    transfer.job.cancelled("after \(transfer.body.sent) bytes were sent")
  }
}
