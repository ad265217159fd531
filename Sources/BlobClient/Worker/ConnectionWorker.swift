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
  let connections: ConnectionMaker
  var buffers: WorkerBuffers
  var heads: RequestHeads
  /// Runs the tasks that continue on this thread with their responses.
  private let ready = ReadyTasks()

  init(_ pool: ConnectionPool, _ inbox: WorkerInbox) {
    self.pool = pool
    self.inbox = inbox
    connections = ConnectionMaker(pool, inbox)
    buffers = WorkerBuffers(pool)
    heads = RequestHeads(userAgent: pool.options.userAgent)
  }

  deinit { connections.letGo() }

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
    inbox.wait(atMost: Self.shortest, thenCall: rest, checking: { connections.checkIdle() }, closing: connections.letGo)
  }

  /// After less idle time, a worker keeps its buffers: usually the next request follows the last response at once.
  private static let shortest = Duration.milliseconds(5)

  private enum End { case further(QueuedExchange), idle, abandoned }

  private func rest() {
    connections.rest()
    buffers.rest()
  }

  private func work(on job: QueuedExchange) -> End {
    guard job.begin(on: inbox) else {
      return pool.next(for: inbox, after: job, ExchangeOutcome(), kept: connections.kept?.url).map { .further($0) }
        ?? .idle
    }
    let (answer, outcome) = exchange(job)
    guard job.settle() else { return .abandoned }
    // The worker becomes idle before the caller gets the response, so that its next request finds this worker and its
    // connection.
    if let kept = connections.kept, pool.stalls.take(at: kept.url) { connections.letGo() }
    let waiting = pool.next(for: inbox, after: job, outcome, kept: connections.kept?.url)
    ready.run { job.resume(answer) }
    return waiting.map { .further($0) } ?? .idle
  }

  private func exchange(_ job: QueuedExchange) -> (QueuedExchange.Answer, ExchangeOutcome) {
    let transfer = Transfer(job)
    // The thread that reads ahead may be blocked in the source.
    defer { if transfer.body.isReadAhead { job.cancellation.cancel() } }
    if let failure = transfer.prepare() { return (.failure(failure), ExchangeOutcome()) }
    if job.body == nil || !pool.isLearning { return (exchange(transfer), ExchangeOutcome()) }
    transfer.times = ExchangeTimes(at: MonotonicClock().now)
    let answer = exchange(transfer)
    return (answer, transfer.times!.outcome(of: transfer, answer, at: MonotonicClock().now))
  }

  private func exchange(_ transfer: Transfer) -> QueuedExchange.Answer {
    do throws(TransportError) {
      let proxy = try pool.proxies.proxy(for: transfer.job.request.url)
      if transfer.job.onlyConnects {
        try connections.connectAhead(transfer, through: proxy)
        return .success(HTTPResponse(head: HTTPHead(status: 0, headers: [:]), body: []))
      }
      try transfer.openBody()
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
}
