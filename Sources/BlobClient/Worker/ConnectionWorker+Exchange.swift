import BlobHTTP
import Blobs
import Platform

/// Sends a request and receives its response over the worker's connection. The head and a small body are sent with
/// one call.
extension ConnectionWorker {
  /// Sends the request and returns its response; the body must be open.
  func answer(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) -> HTTPResponse {
    let relay = proxy.flatMap { transfer.request.url.scheme == "http" && $0.isWeb ? $0 : nil }
    // The request is composed before a connection is chosen: reading a slow source could take so long that the server
    // closes the connection meanwhile, since servers wait only a few seconds for a request.
    var head = try compose(transfer, by: relay)
    defer { if !pool.smallBuffers.mayBeKept { buffers.giveBackSmall() } }
    // If a server closes idle connections just as requests arrive, it is unknown whether it has read the request.
    let url = transfer.request.url
    let mayReuse = !pool.habits.mixesResponses(url) && (!pool.habits.closesIdle(url) || transfer.job.mayBeRepeated)
    if mayReuse, connections.isKept(for: url, through: proxy),
      !transfer.job.exchange.needsNewConnection || connections.kept!.exchanges == 0
    {
      if let answer = try talk(transfer, head, by: relay) { return answer }
      head = try compose(transfer, by: relay)
    }
    try connections.connect(transfer, through: proxy)
    guard let answer = try talk(transfer, head, by: relay) else {
      preconditionFailure("a new connection was never idle")
    }
    return answer
  }

  /// Writes the request's head to `small`, and reads a small body behind it. Returns the head's length.
  private func compose(_ transfer: Transfer, by relay: Proxy?) throws(TransportError) -> Int {
    buffers.takeSmall(for: transfer.request, by: relay)
    let head = heads.write(transfer, by: relay, into: buffers.small)
    if transfer.body.isSmall { try readSmallBody(transfer, at: head) }
    return head
  }

  /// Sends the composed request over the stored connection. nil: the connection was idle before and is dead, and the
  /// request may be sent again.
  private func talk(_ transfer: Transfer, _ head: Int, by relay: Proxy?) throws(TransportError) -> HTTPResponse? {
    let request = transfer.request
    let isSmall = transfer.body.isSmall
    var talk = HTTP1Exchange(connections.kept!, head: head)
    buffers.begin()
    defer { buffers.giveBackPiece() }
    if isSmall {
      talk.waits = talk.wire.canWait
      talk.small.size += Int(transfer.body.length!)
    } else {
      talk.body = buffers.body(of: transfer, over: talk.wire)
      talk.body!.begin(on: talk.wire)
    }
    let connection = connections.kept.take()!
    connection.discards(true)
    connection.lets(wait: isSmall)
    transfer.attempts = 0
    transfer.beginAttempt()
    // Closes the connection, without `close_notify`, unless it was stored again for the next request.
    defer { if connections.kept == nil { connection.wire.close() } }
    var watch = StallTimer(options, transfer)
    do throws(TransportError) {
      while !talk.isOver {
        if transfer.job.isCancelled { throw transfer.cancelled() }
        try step(&talk, transfer, &watch)
      }
    } catch {
      if transfer.job.isStopping { takeArrived(&talk, transfer) }
      var error = error
      error.head = talk.headThatCounts
      throw error
    }
    if let head = transfer.response.head.final, talk.isAnswered || !transfer.body.isSent {
      if talk.isAnswered, UnaskedResponse.isOne(UnsafeRawBufferPointer(buffers.response).prefix(talk.held)) {
        pool.habits.noteMixedResponses(request.url)
      }
      try pool.habits.checkIsOwn(connection, transfer)
      if talk.isReusable, !pool.habits.mixesResponses(request.url), talk.wire.giveBack() {
        connection.becomesIdle(after: transfer)
        connections.kept = connection
      } else if talk.isAnswered, talk.held == 0, !talk.isFirst {
        // The connection is closed now, and no later request would find what has arrived.
        connection.becomesIdle(after: transfer)
        _ = connections.note(talk.wire.idleState, of: connection)
      }
      let response = HTTPResponse(head: head, body: transfer.response.content)
      return relay.map { response.withoutSecrets(of: $0) } ?? response
    }
    // The server may have closed the idle connection before the request arrived.
    let wasClosedIdle = connection.wasIdle && transfer.response.received == 0
    if wasClosedIdle {
      pool.habits.noteIdleClose(request.url)
      connections.noteLoss(of: connection)
    }
    if wasClosedIdle, transfer.job.mayBeRepeated {
      if talk.body?.hasBegun == false { return nil }
      if try transfer.rewind() { return nil }
    }
    throw broken(transfer, talk)
  }

  private func readSmallBody(_ transfer: Transfer, at start: Int) throws(TransportError) {
    let end = start + Int(transfer.body.length!)
    while start + Int(transfer.body.given) < end {
      let room = UnsafeMutableRawBufferPointer(rebasing: buffers.small[start + Int(transfer.body.given)..<end])
      try transfer.read(into: room)
    }
  }

  private func step(_ talk: inout HTTP1Exchange, _ transfer: Transfer, _ watch: inout StallTimer)
    throws(TransportError)
  {
    let outcome = try push(&talk, transfer)
    if outcome == .broken || (outcome == .moved && !talk.isSent) {
      // The server may have responded before the connection broke.
      try drain(&talk, transfer, &watch)
      if outcome == .broken {
        talk.isOver = true
      } else if transfer.response.head.final != nil {
        _ = try watch.wait(transfer)
      }
      return
    }
    // The client itself waits, so the server's time does not pass.
    if outcome == .limited { watch.pause() }
    let limit = try watch.wait(transfer)
    // A response that comes soon is awaited in the `recv` call itself.
    if talk.waits, talk.isSent, limit > 2 * Connection.patience {
      talk.waits = false
      if try receive(&talk, transfer, waiting: true) { try drain(&talk, transfer, &watch) }
      return
    }
    let events =
      outcome == .limited
      ? connections.waiter.waitForRate(
        talk.wire, transfer, wanted: transfer.wanted(buffers.piece.count), atMost: limit)
      : connections.waiter.wait(
        for: talk.wire, POLLIN | (outcome == .blocked ? POLLOUT : 0), atMost: limit, transfer)
    if events != 0 && events != POLLOUT { try drain(&talk, transfer, &watch) }
  }

  /// Receives everything that has arrived. The timeouts also apply to a server that sends without a pause.
  private func drain(
    _ talk: inout HTTP1Exchange, _ transfer: Transfer, _ watch: inout StallTimer
  ) throws(TransportError) {
    while try receive(&talk, transfer) {
      if transfer.job.isCancelled { throw transfer.cancelled() }
      _ = try watch.wait(transfer)
    }
  }

  /// Receives what has arrived when the exchange was cancelled: an interim response may have the URL of the upload, which
  /// the next run needs to resume it.
  private func takeArrived(_ talk: inout HTTP1Exchange, _ transfer: Transfer) {
    for _ in 0..<Self.mostArrived where (try? receive(&talk, transfer)) == true {}  // the exchange has failed already
  }

  /// A server that sends without a pause must not delay the end.
  private static let mostArrived = 16

  /// Sends as much as the connection accepts. `.moved` before everything is sent: it is time to look for a response.
  private func push(_ talk: inout HTTP1Exchange, _ transfer: Transfer) throws(TransportError) -> SendOutcome {
    if !talk.small.isSent {
      let left = UnsafeRawBufferPointer(rebasing: buffers.small[talk.small.sent..<talk.small.size])
      // The body may have to wait for the rate limit, and the server should see the head meanwhile.
      let hasMore = talk.body != nil && transfer.job.grant == nil
      let count = talk.wire.send(left, isWhole: talk.small.sent == 0, hasMore: hasMore)
      guard let count else { return .broken }
      talk.small.sent += count
      if talk.body == nil { transfer.report(handedOver: talk.small.sentOfBody) }
      if !talk.small.isSent { return .blocked }
      if !pool.smallBuffers.mayBeKept { buffers.giveBackSmall() }
    }
    guard let body = talk.body else { return .moved }
    let look = AnswerCheck(after: body)
    while !talk.isSent, !transfer.job.isCancelled, !look.isDue(for: body) {
      // The worker does not wait for the rate limit here, because the server may send something meanwhile.
      if let grant = transfer.job.grant, body.awaitsSource,
        grant.timeLeft(upTo: transfer.wanted(buffers.piece.count)) > .zero
      {
        return .limited
      }
      let outcome = try transfer.advance(body)
      if outcome != .moved && !talk.isSent { return outcome }
    }
    return .moved
  }

  /// Receives and processes bytes that have arrived. false: there were none.
  private func receive(
    _ talk: inout HTTP1Exchange, _ transfer: Transfer, waiting: Bool = false
  ) throws(TransportError) -> Bool {
    if buffers.response.isEmpty || talk.isCrowded { buffers.makeRoom(after: talk.held) }
    let room = UnsafeMutableRawBufferPointer(rebasing: buffers.response[talk.held...])
    let received =
      waiting
      ? pool.whileWaiting { talk.wire.receive(into: room, waiting: true) }
      : talk.wire.receive(into: room, waiting: false)
    switch received {
    case .nothing: return false
    case .bytes(let count):
      talk.held += count
      talk.isCrowded = count == room.count
    case let end:
      if case .end = end {
        talk.hasEnded = true
        // For a response without a length, only the regular end shows that it is complete, and libcurl reports a
        // broken TLS connection as a regular end too. Then such an end does not complete content that goes to
        // `Exchange.received`.
        if talk.wire.knowsItsEnd || !transfer.streamsContent {
          talk.isAnswered = talk.frame.stage == .untilClosed
        }
      }
      talk.isOver = true
      return false
    }
    try take(&talk, transfer)
    return !talk.isOver
  }

  private func take(_ talk: inout HTTP1Exchange, _ transfer: Transfer) throws(TransportError) {
    var used = 0
    defer {
      talk.held -= used
      if used > 0 {
        buffers.response.baseAddress!.copyMemory(from: buffers.response.baseAddress! + used, byteCount: talk.held)
      }
    }
    while !talk.frame.isWhole {
      let bytes = UnsafeRawBufferPointer(rebasing: buffers.response[used..<talk.held])
      var isTaken = true
      switch talk.frame.next(of: bytes) {
      case .more: return
      case .lineTooLong: throw transfer.tooLong(line: ResponseFraming.longestLine)
      case .sectionTooLong: throw transfer.tooLong(ResponseFraming.longestSection)
      case .malformed: throw transfer.notHTTP()
      case .framing(let count): used += count
      case .content(let count):
        used += count
        isTaken = transfer.take(content: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
      case .line(let count):
        used += count
        isTaken = transfer.take(line: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        if isTaken, talk.frame.isInHead, let head = transfer.response.head.final {
          try pool.habits.checkHasArrived(talk, head, transfer)
          if !talk.frame.begin(head, to: transfer.job.request.method) { throw transfer.notHTTP() }
          if transfer.body.isSent, talk.isAnswer(head) { talk.headThatCounts = head }
        }
      }
      if !isTaken {
        if let head = transfer.response.head.final, 200..<300 ~= head.status, !transfer.body.isSent {
          pool.habits.noteEarlySuccess(talk, transfer)
        }
        throw transfer.failure!
      }
    }
    talk.isAnswered = true
    talk.isOver = true
  }

  private func broken(_ transfer: Transfer, _ talk: HTTP1Exchange) -> TransportError {
    let what =
      if transfer.response.head.final != nil {
        "the connection broke in the middle of the answer"
      } else if talk.hasEnded && talk.isSent && transfer.response.received == 0 {
        "\(transfer.server) closed the connection without an answer"
      } else {
        "the connection broke"
      }
    var error = TransportError(
      .broken, "\(transfer.job.name): \(what), \(transfer.reached)", isUnanswered: transfer.response.received == 0)
    error.head = talk.headThatCounts
    return error
  }
}
