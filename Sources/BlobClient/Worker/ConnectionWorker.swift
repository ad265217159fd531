import BlobHTTP
import Blobs
import CCurl

/// One thread, and a connection that is kept alive: one exchange after the other.
///
/// Created, used and freed on its own thread. libcurl's callbacks get the lane as their context.
final class ConnectionWorker {
  let pool: ConnectionPool
  let door: WorkerInbox
  var options: SocketTransport.Options { pool.options }
  /// Each is made when there is something for it to do.
  var exchanger: CurlHandle?
  var connector: CurlHandle?
  /// The one that libcurl is or was busy with last.
  var handle: CurlHandle?
  let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  /// Heads are sent from here, in one go with a small body. Lent by the pool.
  var small = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  var lines = HeaderLines()
  /// Of the last request's head, what the next to the same server has too.
  var standing: (url: HTTPURL, lines: [(name: String, line: String)])?
  /// Of the pool's budget, for the exchange under way.
  var takenBuffer = 0
  /// Why the last socket that libcurl wanted could not be made; 0: it could.
  var socketError: Int32 = 0
  /// Those libcurl has open.
  var sockets: [Int32] = []
  /// More than the last answer has come over libcurl's connection.
  var hasSurplus = false
  /// The one that it is to leave open.
  var taken: Int32 = -1
  /// The connection that libcurl has made for requests that go past it, while none is under way on it.
  var kept: IdleConnection?
  /// What came of a connection that was made before there was a request for it; its message lacks the request's name.
  var failedAhead: (url: HTTPURL, since: SuspendingClock.Instant, error: TransportError)?
  /// What has come of an answer that goes past libcurl. Allocated when the first one comes.
  var inbox = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// false once libcurl has not told what it has connected.
  var connects = true
  #if os(Linux)
    /// The TLS of the connection the last request went over.
    var channel: TLSChannel?
    /// What is read of a body before it is sent. Allocated when the first one comes.
    var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  #endif
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
    // While what they call is there.
    (handle, connector, exchanger) = (nil, nil, nil)
    errorText.deallocate()
    inbox.deallocate()
    #if os(Linux)
      giveBackSmall()
      piece.deallocate()
    #endif
  }

  /// Works until the transport is closed, or this lane is abandoned. While it waits it holds nothing of the last job:
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

  /// An idle lane's large buffers are nobody's: what others take is reckoned without them.
  private func rest() {
    #if os(Linux)
      channel?.rest()
      giveBackSmall()
      piece.deallocate()
      piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    #endif
  }

  private func work(on job: QueuedExchange) -> End {
    guard job.begin(on: door) else {
      return pool.next(for: door, after: job, ExchangeOutcome()).map { .further($0) } ?? .idle
    }
    let (answer, lesson) = exchange(job)
    guard job.settle() else { return .abandoned }
    // Idle before the answer is given: the next request shall find this lane and its connection.
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
      if let answer = try direct(transfer, through: proxy) { return .success(answer) }
      return .success(try exchangeByLibcurl(transfer, through: proxy))
    } catch {
      return .failure(error)
    }
  }

  /// Has libcurl do what `handle` is set to, which is to be ended afterwards.
  func perform(_ transfer: Transfer, with handle: CurlHandle) throws(TransportError) -> CURLcode {
    self.handle = handle
    errorText[0] = 0
    socketError = 0
    handle.begin()
    var watch = StallTimer(options, transfer)
    // Who is found there may only lead to the server: a tunnel's near end.
    let connectsOnly = handle.use == .connection && handle.isPlain
    while true {
      let result = step(handle.multi)
      if handle.use != .connection { report(transfer, by: handle) }
      if let result { return result }
      if transfer.job.isCancelled { throw cancelled(transfer) }
      let wait = try watch.wait(transfer)
      var alarm = curl_waitfd(fd: door.alarm.descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
      var ready: Int32 = 0
      pool.whileWaiting { _ = curl_multi_poll(handle.multi, &alarm, 1, wait, &ready) }
      if alarm.revents != 0 { door.alarm.lower() }
      if ready > 0, !connectsOnly { pool.stirs() }
    }
  }

  /// Tells how much more of the body has left.
  func report(_ transfer: Transfer, by handle: CurlHandle) {
    var uploaded: curl_off_t = 0
    fb_curl_get_offset(handle.easy, CURLINFO_SIZE_UPLOAD_T, &uploaded)
    transfer.body.hasSent(Int64(uploaded), byLibcurlOf: transfer.given)
    report(transfer, sent: transfer.body.count)
  }

  /// As `report(_:by:)`, for a body that the lane sends by itself.
  func report(_ transfer: Transfer, handedOver count: Int64) {
    transfer.body.hasSent(count)
    report(transfer, sent: count)
  }

  private func report(_ transfer: Transfer, sent: Int64) {
    if sent <= transfer.sent { return }
    transfer.job.exchange.sent(Int(sent - transfer.sent))
    transfer.sent = sent
    if let piece = transfer.told?.piece(sent: sent) { pool.passed(piece) }
  }

  func cancelled(_ transfer: Transfer) -> TransportError {
    transfer.job.cancelled("after \(transfer.sent) bytes were sent")
  }
}

/// Lets libcurl do what can be done without waiting. The result of the exchange, when it is over.
private func step(_ multi: UnsafeMutableRawPointer) -> CURLcode? {
  var running: Int32 = 0
  curl_multi_perform(multi, &running)
  if running > 0 { return nil }
  var left: Int32 = 0
  guard let message = curl_multi_info_read(multi, &left) else { return CURLE_FAILED_INIT }
  return fb_curl_message_result(message)
}
