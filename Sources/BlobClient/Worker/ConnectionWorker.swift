import BlobHTTP
import Blobs
import CCurl

/// One thread, and a connection that is kept alive: one exchange after the other.
///
/// Created, used and freed on its own thread.
final class ConnectionWorker {
  let pool: ConnectionPool
  let door: WorkerInbox
  var options: SocketTransport.Options { pool.options }
  /// Heads are sent from here, in one go with a small body. Lent by the pool, or made for a head that is longer than most.
  var small = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Of the last request's head, what the next to the same server has too.
  var standing: (url: HTTPURL, lines: [(name: String, line: String)])?
  /// Of the pool's budget, for the exchange under way.
  var takenBuffer = 0
  /// The connection, while no exchange is under way on it.
  var kept: IdleConnection?
  /// What came of a connection that was made before there was a request for it; its message lacks the request's name.
  var failedAhead: (url: HTTPURL, since: SuspendingClock.Instant, error: TransportError)?
  /// What has come of an answer. Allocated when the first one comes.
  var inbox = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// What is read of a body before it is sent. Allocated when the first one comes.
  var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// The exchange under way.
  var transfer: Transfer?
  /// Tasks that go on here with the answers they waited for.
  private let ready = ReadyTasks()

  init(_ pool: ConnectionPool, _ door: WorkerInbox) {
    self.pool = pool
    self.door = door
  }

  deinit {
    letGo()
    inbox.deallocate()
    giveBackSmall()
    piece.deallocate()
  }

  /// Works until the transport is closed, or this worker is abandoned. While it waits it holds nothing of the last job:
  /// a source's files are closed, and what hears of the exchange is let go.
  func run() {
    var next = door.wait(atMost: Self.shortest, thenCall: rest)
    while let end = next.take().map(work) {
      switch end {
      case .abandoned: return
      case .further(let job): next = job
      case .idle: next = door.wait(atMost: Self.shortest, thenCall: rest)
      }
    }
  }

  /// Who is idle for less keeps its buffers: mostly the next job follows the answer to the last.
  private static let shortest = Duration.milliseconds(5)

  private enum End { case further(QueuedExchange), idle, abandoned }

  /// An idle worker's large buffers are nobody's: what others take is reckoned without them.
  private func rest() {
    if case .sealed(let channel)? = kept?.wire { channel.rest() }
    giveBackSmall()
    piece.deallocate()
    piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  private func work(on job: QueuedExchange) -> End {
    guard job.begin(on: door) else {
      return pool.next(for: door, after: job, ExchangeOutcome()).map { .further($0) } ?? .idle
    }
    let (answer, lesson) = exchange(job)
    guard job.settle() else { return .abandoned }
    // Idle before the answer is given: the next request shall find this worker and its connection.
    let waiting = pool.next(for: door, after: job, lesson)
    ready.run { job.resume(answer) }
    return waiting.map { .further($0) } ?? .idle
  }

  private func exchange(_ job: QueuedExchange) -> (QueuedExchange.Answer, ExchangeOutcome) {
    let transfer = Transfer(job)
    self.transfer = transfer
    defer {
      self.transfer = nil
      #if os(Linux)
        // The thread that reads may be stuck in the source.
        if transfer.isReadAhead { job.cancellation.cancel() }
      #endif
    }
    if let failure = prepare(transfer) { return (.failure(failure), ExchangeOutcome()) }
    if job.body == nil || !pool.isLearning { return (exchange(transfer), ExchangeOutcome()) }
    transfer.told = ExchangeTimes(at: MonotonicClock().now)
    let answer = exchange(transfer)
    return (answer, transfer.told!.lesson(of: transfer, answer, at: MonotonicClock().now))
  }

  private func exchange(_ transfer: Transfer) -> QueuedExchange.Answer {
    do throws(TransportError) {
      let proxy = try pool.proxies.proxy(for: transfer.job.request.url)
      if transfer.job.onlyConnects {
        try connectAhead(transfer, through: proxy)
        return .success(HTTPResponse(head: HTTPHead(status: 0, headers: [:]), body: []))
      }
      try openBody(transfer)
      if let body = transfer.job.body, body.length == nil { pool.counts(transfer.job, transfer.length) }
      return .success(try answer(transfer, through: proxy))
    } catch {
      // A refusal counts that came before the body was sent, whether or not its rest comes.
      if error.code == .timeout, !transfer.isSent, let head = transfer.head.final {
        return .success(HTTPResponse(head: head, body: transfer.content))
      }
      return .failure(error)
    }
  }

  /// Tells how much of the body this attempt has handed to the connection.
  func report(_ transfer: Transfer, handedOver sent: Int64) {
    transfer.handed = sent
    if sent <= transfer.sent { return }
    transfer.job.exchange.sent(Int(sent - transfer.sent))
    transfer.sent = sent
    if let piece = transfer.told?.piece(sent: sent) { pool.passed(piece) }
  }

  func cancelled(_ transfer: Transfer) -> TransportError {
    transfer.job.cancelled("after \(transfer.sent) bytes were sent")
  }
}
