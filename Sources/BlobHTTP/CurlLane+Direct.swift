import Blobs
import CCurl

#if canImport(Glibc)
  import Glibc

  /// A request over a connection that libcurl has made and keeps: past libcurl, whose own work for a small one costs more
  /// than all the rest of it. Head and small body go in one `send`. What cannot go so, libcurl does.
  extension CurlLane {
    /// libcurl's connection, while no request is under way on it.
    struct Kept {
      let wire: Wire
      /// Some place at its server.
      let url: HTTPURL
      var since: SuspendingClock.Instant
      /// `receive(waiting:)` is possible on it now.
      var waits = false

      /// A body that is not small is sent by calls that must not wait.
      mutating func lets(wait: Bool) {
        if waits == wait || !wire.canWait { return }
        wire.lets(wait: wait)
        waits = wait
      }
    }

    /// libcurl has done an exchange: is there a connection now that the next one may use?
    func remember(_ transfer: Transfer) {
      kept = nil
      let url = transfer.job.request.url
      guard shape.proxy == nil, let wire = transfer.wire, sockets.contains(wire.socket) else { return }
      kept = Kept(wire: wire, url: url, since: .now)
    }

    /// The connection is libcurl's again.
    func letGo() {
      kept?.lets(wait: false)
      kept = nil
    }

    /// The answer, if the request can go this way. nil: libcurl is to send it, and nothing has been sent, or nothing that
    /// must not be sent twice.
    func direct(_ transfer: Transfer) throws(TransportError) -> HTTPResponse? {
      let request = transfer.job.request
      guard var kept, kept.url.isAtServer(of: request.url), SuspendingClock.now - kept.since < Self.longestIdle,
        transfer.job.exchange.received == nil,
        transfer.job.exchange.trailers == nil,
        let length = transfer.length, request.canBeWritten, kept.wire.isQuiet
      else { return nil }
      let headSize = write(headOf: request, transfer)
      var talk = DirectTalk(wire: kept.wire, head: headSize)
      talk.waits = kept.wire.canWait && length < Self.smallBody
      shape.takenBuffer = 0
      defer { pool.returnBuffer(shape.takenBuffer) }
      kept.lets(wait: length < Self.smallBody)
      self.kept = kept
      if length < Self.smallBody {
        try readSmallBody(transfer, at: headSize)
        talk.size += Int(length)
      } else {
        talk.body = ownBody(transfer)
        talk.body!.begin(on: kept.wire)
      }
      transfer.attempts = 1
      self.kept = nil
      // Unless all goes well, libcurl finds it dead and lets it go.
      defer {
        if self.kept == nil {
          kept.lets(wait: false)
          shutdown(kept.wire.socket, Int32(SHUT_RDWR))
        }
      }
      var watch = Watch(options, transfer)
      while !talk.isOver {
        if transfer.job.isCancelled { throw cancelled(transfer) }
        try step(&talk, transfer, &watch)
      }
      if let head = transfer.head.final, talk.isAnswered || !transfer.isSent {
        try checkNotTooSoon(head, transfer)
        if talk.isReusable(transfer), kept.wire.giveBack() {
          self.kept = kept
          self.kept!.since = .now
        }
        return HTTPResponse(head: head, body: transfer.content)
      }
      // Else the server may only have closed it before it heard of us.
      if transfer.received == 0, request.isIdempotent {
        if talk.body?.hasBegun == false || rewind(to: 0) == CURL_SEEKFUNC_OK { return nil }
      }
      throw transfer.failure ?? broken(transfer)
    }

    private func step(_ talk: inout DirectTalk, _ transfer: Transfer, _ watch: inout Watch) throws(TransportError) {
      let outcome = try push(&talk, transfer)
      if outcome == .broken || (outcome == .moved && !talk.isSent) {
        // Where it is broken, it may have answered before.
        while try receive(&talk, transfer) {}
        if outcome == .broken { talk.isOver = true }
        return
      }
      let limit = try watch.wait(transfer)
      // An answer that comes soon is waited for in the call that reads it.
      if talk.waits, talk.isSent, limit > 2 * Wire.patience {
        talk.waits = false
        var isMore = try receive(&talk, transfer, waiting: true)
        while isMore { isMore = try receive(&talk, transfer) }
        return
      }
      var ready: Int32 = 0
      var room = curl_waitfd(
        fd: talk.wire.socket, events: Int16(CURL_WAIT_POLLIN | (outcome == .blocked ? CURL_WAIT_POLLOUT : 0)),
        revents: 0)
      pool.whileWaiting { _ = curl_multi_poll(multi, &room, 1, limit, &ready) }
      if ready > 0 { pool.stirs() }
      // Also where libcurl does not pass on what is wrong with the connection.
      if ready > 0, Int32(room.revents) != CURL_WAIT_POLLOUT { while try receive(&talk, transfer) {} }
    }

    /// Sends what the connection takes. `.moved` before all is sent: it is time to see whether there is an answer.
    private func push(_ talk: inout DirectTalk, _ transfer: Transfer) throws(TransportError) -> LaneOutcome {
      if talk.sent < talk.size {
        let left = UnsafeRawBufferPointer(rebasing: small[talk.sent..<talk.size])
        let count = talk.wire.send(left, isWhole: talk.sent == 0, hasMore: talk.body != nil)
        guard let count else { return .broken }
        talk.sent += count
        if talk.body == nil { report(transfer, sent: Int64(max(0, talk.sent - talk.head))) }
        if talk.sent < talk.size { return .blocked }
      }
      guard let body = talk.body else { return .moved }
      let look = LaneLook(after: body)
      while !talk.isSent, !transfer.job.isCancelled, !look.isDue(for: body) {
        let outcome = try advance(body, transfer)
        if outcome != .moved && !talk.isSent { return outcome }
      }
      return .moved
    }

    /// Takes what has come. false: there was nothing.
    private func receive(
      _ talk: inout DirectTalk, _ transfer: Transfer, waiting: Bool = false
    ) throws(TransportError) -> Bool {
      if inbox.baseAddress == nil { inbox = .allocate(byteCount: AnswerFrame.longestLine, alignment: 16) }
      let room = UnsafeMutableRawBufferPointer(rebasing: inbox[talk.held...])
      let received =
        waiting
        ? pool.whileWaiting { talk.wire.receive(into: room, waiting: true) }
        : talk.wire.receive(into: room, waiting: false)
      switch received {
      case .nothing: return false
      case .bytes(let count): talk.held += count
      case let end:
        if case .end = end { talk.isAnswered = talk.frame.stage == .untilClosed }
        talk.isOver = true
        return false
      }
      try take(&talk, transfer)
      return !talk.isOver
    }

    private func take(_ talk: inout DirectTalk, _ transfer: Transfer) throws(TransportError) {
      var used = 0
      defer {
        talk.held -= used
        if used > 0 { inbox.baseAddress!.copyMemory(from: inbox.baseAddress! + used, byteCount: talk.held) }
      }
      while talk.frame.stage != .whole {
        let bytes = UnsafeRawBufferPointer(rebasing: inbox[used..<talk.held])
        var isTaken = true
        switch talk.frame.next(of: bytes) {
        case .more: return
        case .malformed: throw notHTTP(transfer)
        case .framing(let count): used += count
        case .content(let count):
          used += count
          isTaken = take(content: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        case .line(let count):
          used += count
          isTaken = take(line: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
          if isTaken, talk.frame.stage == .head, let head = transfer.head.final,
            !talk.frame.begin(head, to: transfer.job.request.method)
          {
            throw notHTTP(transfer)
          }
        }
        if !isTaken { throw transfer.failure! }
      }
      talk.isAnswered = true
      talk.isOver = true
    }

    private func notHTTP(_ transfer: Transfer) -> TransportError {
      TransportError(
        .badResponse,
        "\(transfer.job.name): what \(transfer.server) answers is not HTTP/1.1, after \(transfer.sent) bytes were sent")
    }

    private func broken(_ transfer: Transfer) -> TransportError {
      let when = transfer.head.final == nil ? "" : " in the middle of the answer"
      return TransportError(
        .broken, "\(transfer.job.name): the connection broke\(when), after \(transfer.sent) bytes were sent")
    }

    /// libcurl closes a connection that was idle for longer.
    private static let longestIdle = Duration.seconds(50)
  }

  /// How far an exchange is that goes past libcurl.
  private struct DirectTalk {
    let wire: Wire
    /// Bytes of the request's head.
    let head: Int
    /// Bytes that are to be sent from `small`: the head, and a small body.
    var size: Int
    /// Those that the connection has taken.
    var sent = 0
    /// What follows them.
    var body: (any LaneBody)?
    /// Bytes that have come and are not taken yet.
    var held = 0
    var frame = AnswerFrame()
    var isAnswered = false
    var isOver = false
    /// The answer is waited for in the call that reads it.
    var waits = false

    init(wire: Wire, head: Int) {
      self.wire = wire
      self.head = head
      size = head
    }

    var isSent: Bool { sent == size && body.map { $0.sent == $0.length } ?? true }

    /// Whether another request may follow: both sides have said all there is to say.
    func isReusable(_ transfer: Transfer) -> Bool {
      isAnswered && isSent && held == 0 && frame.stage == .whole && frame.keepsConnection
    }
  }
#else
  extension CurlLane {
    struct Kept {}
    func remember(_ transfer: Transfer) {}
    func letGo() {}
    func direct(_ transfer: Transfer) throws(TransportError) -> HTTPResponse? { nil }
  }
#endif
