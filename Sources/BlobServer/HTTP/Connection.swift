import BlobHTTP
import Blobs
import Platform

/// The connection of one client. It answers each request before it parses the next one.
final class Connection: @unchecked Sendable {
  // Belongs to the thread of its event loop. While a worker processes a request, the loop neither reads nor writes, and
  // that worker may call the methods at the end of this class.
  enum Phase {
    /// The TLS handshake is in progress.
    case handshake
    /// A header section is being read or expected.
    case head
    /// A worker processes the request. The body has been read, or will be read afterwards.
    case waiting(bodyIsRead: Bool)
    case receiving(any BodyReceiver)
    /// A short body is read and discarded, so that the connection can be reused.
    case discarding(Reply)
    case answering(Reply, closes: Bool)
    /// The last response was sent. Closing a socket with unread bytes would reset the connection, and the client might
    /// lose the response. So received bytes are discarded until the client closes, for a few seconds at most. RFC 9112
    /// §9.6.
    case lingering
    case closed
  }

  let stream: ClientStream
  unowned let loop: EventLoop
  var phase: Phase
  var timer: ConnectionTimer
  var parser = RequestParser()
  private var writer: ResponseWriter
  var unparsed = UnparsedBytes()
  var pace = BodyPace()
  var waits = ConnectionWaits()
  /// The request that has not been answered yet.
  var request: Request?
  private var socketWatch: SocketWatch
  /// Facts about the current request, for the log and the counters; nil: no request has begun.
  var notes: RequestNotes?

  /// When a request is refused, a body of at most this many bytes is read and discarded.
  private static let mostDiscarded: Int64 = 64 << 10

  init(_ stream: ClientStream, tag: UInt64, _ loop: EventLoop) {
    self.stream = stream
    socketWatch = SocketWatch(tag: tag)
    self.loop = loop
    phase = stream.isEncrypted ? .handshake : .head
    timer = ConnectionTimer(loop.clock.now, loop.limits)
    writer = ResponseWriter(stream)
  }

  /// The number by which the event loop identifies the connection.
  var tag: UInt64 { socketWatch.tag }
  var isLingering: Bool { if case .lingering = phase { true } else { false } }
  private var isWaiting: Bool { if case .waiting = phase { true } else { false } }
  /// Whether it may be closed because another client waits for its place: bytes that have arrived are not lost.
  var mayYield: Bool { isLingering || !stream.hasMore && !unparsed.hasTurnLeft && Socket.isEmpty(stream.socket.number) }
  var readsRequest: Bool {
    switch phase {
    case .head, .receiving, .discarding: true
    case .handshake, .waiting, .answering, .lingering, .closed: false
    }
  }

  // MARK: Called by the event loop

  func start() { if !watch(for: .read) { close() } }

  /// Called when the socket is readable, writable or broken.
  func advance(_ event: Poller.Event) {
    switch phase {
    case .handshake: shakeHands()
    // Otherwise the poller would report the same event again and again while the worker is busy.
    case .waiting: if event.isBroken { unwatch() } else { watch(for: []) }
    case .answering: flush()
    case .lingering: if !stream.discard(through: loop.buffers.received) { close() }
    case .receiving where waits.isPaused && event.isBroken: close()
    case .head, .receiving, .discarding:
      if !writer.isEmpty, writer.flush(through: loop.buffers.file) == .broken { return close() }
      if !waits.isPaused, event.isReadable || event.isWritable || event.isBroken { goOnReading() }
    case .closed: return
    }
    settle()
  }

  /// Continues with bytes that were already read from the socket.
  func goOn() {
    waits.isQueued = false
    if readsRequest, !waits.isPaused { goOnReading() }
    settle()
  }

  func goOnReading() { if unparsed.hasTurnLeft { takeHeld() } else { read() } }

  /// Called with the worker's decision.
  func decided(_ plan: Plan) {
    guard case .waiting(let bodyIsRead) = phase else { preconditionFailure("no worker was asked") }
    timer.goOn(loop.clock.now)
    phase = .head
    follow(plan, bodyIsRead: bodyIsRead)
    if loop.isCutting { return cut() }
    takeHeld()
    settle()
  }

  /// Closes the connection at once, unless a worker is busy with its request: then it closes when the worker is done.
  func cut() { if !isWaiting { close() } }

  func close() {
    if case .closed = phase { return }
    var hasFiles = false
    if case .receiving(let receiver) = phase {
      takeArrived()
      receiver.cut()
      hasFiles = true
    }
    if case .answering(let reply, _) = phase, reply.isOfFiles, sendsBody(of: reply), loop.isCutting, let request {
      loop.handler.counters.cutDownloads.note(request.target)
    }
    phase = .closed
    writer.stop()
    unwatch()
    endRequest()
    loop.forget(self, hasFiles: hasFiles)
  }

  func begin(_ request: Request) {
    self.request = request
    loop.handler.requestBegan()
    notes = newNotes
  }

  private var newNotes: RequestNotes { RequestNotes(.now, address: loop.handler.wantsAddresses ? peerAddress : nil) }

  private func endRequest() {
    if let notes { loop.handler.ended(notes, request, sent: writer.sent) }
    request?.endVisit(loop.handler.counters, status: notes?.status)
    notes = nil
    if request != nil { loop.handler.requestEnded() }
    request = nil
  }

  // MARK: Events that the poller watches for

  /// Makes the poller watch for the events that the phase needs.
  func settle() {
    switch phase {
    case .handshake, .waiting, .closed: break
    case .receiving(let receiver) where waits.isPaused || !hasRoom(receiver):
      if !waits.isPaused { timer.wait() }
      waits.isPaused = true
      watch(for: writer.isEmpty ? [] : .write)
    case .head, .receiving, .discarding:
      // If TLS must write before it can read, bytes stay unread in the socket; watching for reads would report them
      // again and again.
      stream.setLeastReadable(leastToRead)
      watch(for: stream.mustWriteToRead ? .write : writer.isEmpty ? .read : [.read, .write])
      if stream.hasMore || unparsed.hasTurnLeft, !waits.isQueued {
        waits.isQueued = true
        loop.goOnLater(with: self)
      }
    case .answering: watch(for: waits.isStarved ? [] : .write)
    case .lingering:
      stream.setLeastReadable(1)
      watch(for: .read)
    }
  }

  @discardableResult private func watch(for interest: Poller.Interest) -> Bool {
    socketWatch.change(to: interest, of: stream.socket, in: loop.poller)
  }

  private func unwatch() { socketWatch.end(of: stream.socket, in: loop.poller) }

  private func shakeHands() {
    timer.came(loop.clock.now, loop.limits)
    switch stream.handshake() {
    case .done:
      phase = .head
      read()
    case .reading: watch(for: .read)
    case .writing: watch(for: .write)
    case .failed: close()
    }
  }

  // MARK: Responding

  /// `hasMore`: bytes of the body have arrived already.
  func follow(_ plan: Plan, bodyIsRead: Bool, hasMore: Bool = false) {
    guard let request else { preconditionFailure("there is no request") }
    let isRead = bodyIsRead || !request.hasBody
    switch plan {
    case .receive(let receiver):
      if isRead { return follow(receiver.end([:]), bodyIsRead: true) }
      phase = .receiving(receiver)
      pace.bodyBegins()
      if request.expectsLeave, !hasMore, unparsed.isEmpty { sendInterim(Self.leave) }
    case .later(let start):
      if loop.isCutting { return close() }
      phase = .waiting(bodyIsRead: bodyIsRead)
      timer.wait()
      start { [self, loop] plan in loop.post(.decided(self, plan)) }
    case .reply(let reply):
      if isRead { return answer(reply) }
      if let length = request.contentLength, length <= Self.mostDiscarded, request.headers["Expect"] == nil {
        phase = .discarding(reply)
      } else {
        answer(reply, closes: true)
      }
    }
  }

  private static let leave = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)

  func answer(_ reply: Reply, closes: Bool = false) {
    let reply = request.map { loop.handler.service.completed(reply, to: $0) } ?? reply
    let closes = closes || loop.isCutting || loop.isCrowded || request?.keepsConnection != true
    let text = reply.text(to: method, date: loop.date, keepsConnection: !closes)
    // A malformed request is answered although it has not begun.
    if notes == nil { notes = newNotes }
    notes?.answer(
      reply.status, bodyStart: writer.end + Int64(text.count - (sendsBody(of: reply) ? reply.size : 0)))
    writer.add(text, then: sendsBody(of: reply) ? reply.body : nil)
    phase = .answering(reply.withoutBytes, closes: closes)
    send()
  }

  /// The method of the current request, also if the request is malformed.
  private var method: String { request?.method ?? parser.method }
  private func sendsBody(of reply: Reply) -> Bool { reply.hasBody(to: method) }

  /// Sends as much of the response as the socket accepts.
  private func send() {
    guard case .answering(let reply, let closes) = phase else { return }
    let before = writer.sent
    let outcome = writer.flush(through: loop.buffers.file) { [self, loop] in loop.post(.resumed(self)) }
    loop.handler.counters.bytesSent.add(writer.sent - before)
    switch outcome {
    case .blocked: return
    case .starved:
      waits.isStarved = true
      return timer.wait()
    case .broken: return close()
    case .done:
      if reply.isOfFiles, sendsBody(of: reply) { loop.handler.counters.filesSent.add(1) }
      endRequest()
    }
    if closes {
      stream.endSending()
      phase = .lingering
      timer.linger(loop.clock.now, isInVain: reply.status == 409 && parser.method == "PATCH")
      loop.lingers(self)
    } else {
      phase = .head
      timer.idle(loop.clock.now)
    }
  }

  func flush() {
    send()
    if readsRequest { takeHeld() }
  }

  // MARK: Called by the worker that processes the request

  /// Sends an interim response. Bytes that the socket does not accept at once are sent before the final response.
  func sendInterim(_ text: [UInt8]) {
    writer.add(text)
    _ = writer.flush(through: loop.buffers.file)  // if this fails, the next write fails too
  }

  /// Whether the client has acknowledged all sent bytes, so that a short message can be sent as a whole.
  var isQuiet: Bool { writer.isEmpty && Socket.isQuiet(stream.socket.number) }

  /// The client's IP address; nil: the system does not tell it.
  var peerAddress: String? { Socket.peerAddress(of: stream.socket.number) }

  /// Whether the client has closed the connection. A client that has closed and one that has only shut down its sending
  /// side look the same until something is sent to them. So the first call sends an interim response without
  /// information, and the next call knows the result. `knowsInterim`: false for HTTP/1.0, which has no interim
  /// responses.
  func clientHasGone(knowsInterim: Bool) -> Bool {
    switch Socket.peer(of: stream.socket.number) {
    case .open: return false
    case .gone: return true
    case .sendsNoMore:
      if notes?.hasProbed == false, knowsInterim { sendInterim(Self.leave) }
      notes?.hasProbed = true
      return !knowsInterim
    }
  }
}
