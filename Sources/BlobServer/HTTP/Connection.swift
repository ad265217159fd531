import BlobHTTP
import Blobs
import Platform

/// The connection of one client: requests one after the other, each answered before the next one is looked at.
final class Connection: @unchecked Sendable {
  // Belongs to the thread of its event loop. While a worker decides about a request the loop neither reads nor writes, and that
  // worker may call what stands at the end.
  enum Phase {
    /// TLS is being agreed on.
    case handshake
    /// A head is read, or waited for.
    case head
    /// A worker decides. The body has been read, or will be afterwards.
    case waiting(bodyIsRead: Bool)
    case receiving(any BodyReceiver)
    /// A short body is read and dropped, so that the connection can go on.
    case discarding(Reply)
    case answering(Reply, closes: Bool)
    /// The last answer was sent. A socket that is closed with unread bytes is reset, and the client may lose the answer: what
    /// comes is thrown away until the client closes, for some seconds at most. RFC 9112 §9.6.
    case lingering
    case closed
  }

  /// By which the loop knows it.
  let tag: UInt64
  let stream: ClientStream
  unowned let loop: EventLoop
  var phase: Phase
  var timer: ConnectionTimer
  var parser = RequestParser()
  private var writer: AnswerWriter
  /// Bytes that were read and not looked at.
  var held: [UInt8] = []
  /// The request that is not answered yet.
  var request: Request?
  /// What the poller waits for; nil: it does not watch the socket.
  private var watched: Poller.Interest?
  /// The client was asked whether it is still there, by an interim answer.
  var isProbed = false

  /// A body up to this is read and dropped when the request is refused.
  private static let mostDiscarded: Int64 = 64 << 10

  init(_ stream: ClientStream, tag: UInt64, _ loop: EventLoop) {
    self.stream = stream
    self.tag = tag
    self.loop = loop
    phase = stream.isEncrypted ? .handshake : .head
    timer = ConnectionTimer(loop.now, loop.limits)
    writer = AnswerWriter(stream)
  }

  var isLingering: Bool { if case .lingering = phase { true } else { false } }
  private var isWaiting: Bool { if case .waiting = phase { true } else { false } }
  var readsRequest: Bool {
    switch phase {
    case .head, .receiving, .discarding: true
    case .handshake, .waiting, .answering, .lingering, .closed: false
    }
  }

  // MARK: What the loop calls

  func start() { if !watch(.read) { close() } }

  /// The socket can be read from or written to, or is broken.
  func advance(_ event: Poller.Event) {
    switch phase {
    case .handshake: shakeHands()
    // What comes meanwhile would be told again and again.
    case .waiting: if event.isBroken { unwatch() } else { watch([]) }
    case .answering: flush()
    case .lingering: if !stream.discard(through: loop.room) { close() }
    case .head, .receiving, .discarding:
      if !writer.isEmpty, writer.flush(through: loop.fileRoom) == .broken { return close() }
      if event.isReadable || event.isWritable || event.isBroken { read() }
    case .closed: return
    }
    settle()
  }

  /// Reads on what the socket has given already.
  func goOn() {
    if readsRequest { read() }
    settle()
  }

  /// A worker has decided.
  func decided(_ plan: Plan) {
    guard case .waiting(let bodyIsRead) = phase else { preconditionFailure("no worker was asked") }
    timer.goOn(loop.now)
    phase = .head
    follow(plan, bodyIsRead: bodyIsRead)
    if loop.isCutting { return cut() }
    takeHeld()
    settle()
  }

  /// Ends what takes too long.
  func check() {
    if timer.isOver(loop.now, loop.limits, moved: { Socket.moved(stream.socket.number) }) { close() }
  }

  /// Ends it at once, unless a worker decides: then it ends when that is done.
  func cut() { if !isWaiting { close() } }

  func close() {
    if case .closed = phase { return }
    if case .receiving(let receiver) = phase { receiver.cut() }
    phase = .closed
    unwatch()
    endRequest()
    loop.forget(self)
  }

  private func endRequest() {
    if request != nil { loop.requestEnded() }
    request = nil
  }

  // MARK: What the poller watches

  /// Has the poller wait for what the phase needs.
  private func settle() {
    switch phase {
    case .handshake, .waiting, .closed: break
    case .head, .receiving, .discarding:
      // What TLS cannot read before it has written something stays unread in the socket, and would be told again and again.
      watch(stream.mustWriteToRead ? .write : writer.isEmpty ? .read : [.read, .write])
      if stream.hasMore { loop.goOnLater(with: self) }
    case .answering: watch(.write)
    case .lingering: watch(.read)
    }
  }

  @discardableResult private func watch(_ interest: Poller.Interest) -> Bool {
    if watched == interest { return true }
    defer { watched = interest }
    let socket = stream.socket.number
    return watched == nil
      ? loop.poller.add(socket, interest, tag: tag) : loop.poller.change(socket, interest, tag: tag)
  }

  private func unwatch() {
    if watched != nil { loop.poller.remove(stream.socket.number) }
    watched = nil
  }

  private func shakeHands() {
    switch stream.handshake() {
    case .done:
      phase = .head
      read()
    case .reading: watch(.read)
    case .writing: watch(.write)
    case .failed: close()
    }
  }

  // MARK: Answering

  /// `hasMore`: bytes of the body have come already.
  func follow(_ plan: Plan, bodyIsRead: Bool, hasMore: Bool = false) {
    guard let request else { preconditionFailure("there is no request") }
    let isRead = bodyIsRead || !request.hasBody
    switch plan {
    case .receive(let receiver):
      if isRead { return follow(receiver.end([:]), bodyIsRead: true) }
      phase = .receiving(receiver)
      if request.expectsLeave, !hasMore, held.isEmpty { sendInterim(Self.leave) }
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
    let reply = request.map { loop.service.completed(reply, to: $0) } ?? reply
    let closes = closes || loop.isCutting || request?.keepsConnection != true
    let method = request?.method ?? parser.method
    let text = reply.text(to: method, date: loop.date, keepsConnection: !closes)
    if case .file(let item, let range) = reply.body, reply.hasBody(to: method) {
      writer.add(text, file: (item, range))
    } else {
      writer.add(text)
    }
    phase = .answering(reply, closes: closes)
    send()
  }

  /// Sends what the socket takes of the answer.
  private func send() {
    guard case .answering(_, let closes) = phase else { return }
    switch writer.flush(through: loop.fileRoom) {
    case .blocked: return
    case .broken: return close()
    case .done: endRequest()
    }
    if closes {
      stream.endSending()
      phase = .lingering
      timer.linger(loop.now)
      loop.lingers(self)
    } else {
      phase = .head
      timer.isDone(loop.now, loop.limits)
    }
  }

  private func flush() {
    send()
    if readsRequest { takeHeld() }
  }

  // MARK: What a worker may call while it decides

  /// Sends an interim answer. What the socket does not take at once goes before the answer.
  func sendInterim(_ text: [UInt8]) {
    writer.add(text)
    _ = writer.flush(through: loop.fileRoom)  // where it fails, so does what follows
  }

  /// All that was ever sent has arrived, so that a little more fits whole.
  var isQuiet: Bool { writer.isEmpty && Socket.isQuiet(stream.socket.number) }

  /// A client that has closed and one that only sends no more look the same until they are sent something. So the client is
  /// sent an interim answer, which says nothing new, and the next call knows. `knowsInterim`: HTTP/1.0 has none.
  func clientHasGone(knowsInterim: Bool) -> Bool {
    switch Socket.peer(of: stream.socket.number) {
    case .open: return false
    case .gone: return true
    case .sendsNoMore:
      if !isProbed, knowsInterim { sendInterim(Self.leave) }
      isProbed = true
      return !knowsInterim
    }
  }
}
