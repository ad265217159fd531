import Blobs
import CCurl

/// One thread, one libcurl handle, one connection kept alive: one exchange after the other.
///
/// Created, used and freed on its own thread. libcurl's callbacks get the lane as their context.
final class CurlLane {
  let pool: LanePool
  let door: LaneDoor
  var options: CurlTransport.Options { pool.options }
  let multi: UnsafeMutableRawPointer
  private(set) var easy: UnsafeMutableRawPointer
  let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  /// Small bodies are sent from here, in one go with the head. Allocated when the first one comes.
  var small = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  var lines = HeaderLines()
  /// Of the last request's head, what the next to the same server has too.
  var standing: (url: HTTPURL, lines: [(name: String, line: String)])?
  var shape = Shape()
  /// Those libcurl has open.
  var sockets: [Int32] = []
  /// The one it keeps for the next request, where that may go past libcurl.
  var kept: Kept?
  /// What has come of an answer that goes past libcurl. Allocated when the first one comes.
  var inbox = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// false once libcurl has not told which of them a request goes over.
  var sendsBodies = true
  #if canImport(Glibc)
    /// libcurl's TLS, of the connection the last request went over.
    var channel: TLSChannel?
    /// What is read of a body before it is sent. Allocated when the first one comes.
    var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  #endif
  /// The exchange under way.
  var transfer: Transfer?
  /// Tasks that go on here with the answers they waited for.
  private let ready = ReadyTasks()

  init(_ pool: LanePool, _ door: LaneDoor) {
    self.pool = pool
    self.door = door
    multi = curl_multi_init()!
    easy = curl_easy_init()!
    setUp()
    door.opens(multi)
  }

  deinit {
    door.opens(nil)
    curl_easy_cleanup(easy)
    curl_multi_cleanup(multi)
    errorText.deallocate()
    small.deallocate()
    inbox.deallocate()
    #if canImport(Glibc)
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

  private enum End { case further(LaneJob), idle, abandoned }

  /// An idle lane's large buffers are nobody's: what others take is reckoned without them.
  private func rest() {
    #if canImport(Glibc)
      channel?.rest()
      piece.deallocate()
      piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    #endif
  }

  private func work(on job: LaneJob) -> End {
    guard job.begin(on: door) else {
      return pool.next(for: door, after: job, LaneLesson()).map { .further($0) } ?? .idle
    }
    let (answer, lesson) = exchange(job)
    guard job.settle() else {
      pool.counts(-lesson.counted)
      return .abandoned
    }
    // Idle before the answer is given: the next request shall find this lane and its connection.
    let waiting = pool.next(for: door, after: job, lesson)
    ready.run { job.resume(answer) }
    return waiting.map { .further($0) } ?? .idle
  }

  private func exchange(_ job: LaneJob) -> (LaneJob.Answer, LaneLesson) {
    let transfer = Transfer(job)
    self.transfer = transfer
    defer {
      self.transfer = nil
      #if canImport(Glibc)
        // The thread that reads may be stuck in the source.
        if transfer.isReadAhead { job.cancellation.cancel() }
      #endif
      if job.exchange.trailers != nil { renewHandle() }
    }
    if job.body == nil || !pool.isLearning { return (exchange(transfer), LaneLesson()) }
    transfer.told = LaneTold(at: MonotonicClock().now)
    let answer = exchange(transfer)
    return (answer, transfer.told!.lesson(of: transfer, answer, at: MonotonicClock().now))
  }

  private func exchange(_ transfer: Transfer) -> LaneJob.Answer {
    let job = transfer.job
    do throws(TransportError) {
      let proxy = try pool.proxies.proxy(for: job.request.url)
      try openBody(transfer)
      if transfer.told != nil {
        transfer.counted = min(transfer.length ?? .max, LaneTold.piece)
        pool.counts(transfer.counted)
      }
      if proxy == nil, let answer = try direct(transfer) { return .success(answer) }
      letGo()
      try prepare(transfer, through: proxy)
      defer { pool.returnBuffer(shape.takenBuffer) }
      let answer = try perform(transfer)
      remember(transfer)
      return .success(answer)
    } catch {
      return .failure(error)
    }
  }

  private func perform(_ transfer: Transfer) throws(TransportError) -> HTTPResponse {
    curl_multi_add_handle(multi, easy)
    defer { curl_multi_remove_handle(multi, easy) }
    var watch = Watch(options, transfer)
    while true {
      let result = step(multi)
      report(transfer)
      if let result { return try answer(transfer, result) }
      if transfer.job.isCancelled { throw cancelled(transfer) }
      let wait = try watch.wait(transfer)
      if try sendBody(transfer, wait) { continue }
      var ready: Int32 = 0
      pool.whileWaiting { _ = curl_multi_poll(multi, nil, 0, wait, &ready) }
      if ready > 0 { pool.stirs() }
    }
  }

  /// libcurl 7.88 frees what it has made of trailers once for each later request that has some. The connection is the
  /// multi handle's, and stays.
  private func renewHandle() {
    curl_easy_cleanup(easy)
    easy = curl_easy_init()!
    shape = Shape()
    setUp()
  }

  /// Tells how much more of the body has left.
  func report(_ transfer: Transfer) {
    var uploaded: curl_off_t = 0
    if shape.body == .own {
      uploaded = curl_off_t(transfer.given)
    } else {
      fb_curl_get_offset(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded)
    }
    // libcurl counts the frames of a chunked body too. After a new attempt it counts from 0: nothing is told twice.
    report(transfer, sent: min(Int64(uploaded), transfer.given))
  }

  func report(_ transfer: Transfer, sent: Int64) {
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
