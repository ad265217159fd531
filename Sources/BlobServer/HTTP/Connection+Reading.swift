import BlobHTTP
import Platform

/// The connection parses bytes in the buffer into which they were read, which all connections of its event loop share.
/// It copies bytes that belong to a later request and keeps them until the current request is answered.
extension Connection {
  /// Bodies with at least this many remaining bytes go through a pipe.
  private static let leastPiped: Int64 = 64 << 10
  /// Most bytes read while waiting for a header section: a small body arrives together with it.
  private static let mostAhead = 64 << 10

  func read() {
    if let pipe = loop.buffers.pipe, let receiver = pipedReceiver { return splice(to: receiver, pipe) }
    let room = loop.buffers.received
    let kept = unparsed.bytes.count
    unparsed.bytes.withUnsafeBytes { room.copyMemory(from: $0) }
    let end = min(room.count, kept + mostToRead)
    switch stream.receive(into: UnsafeMutableRawBufferPointer(rebasing: room[kept..<end])) {
    case .bytes(0): break
    case .bytes(let count):
      timer.came(loop.clock.now, loop.limits)
      loop.handler.received(count)
      take(UnsafeMutableRawBufferPointer(rebasing: room[..<(kept + count)]))
    case .end, .broken: close()
    }
  }

  /// The receiver to which the next bytes go through the pipe.
  private var pipedReceiver: (any BodyReceiver)? {
    guard case .receiving(let receiver) = phase, unparsed.isEmpty, receiver.takesPipes, !stream.isEncrypted,
      parser.contentAhead >= Self.leastPiped
    else { return nil }
    return receiver
  }

  /// Called by the event loop once in a while. Takes what has arrived and was too little to be reported, and closes the
  /// connection if a timeout has passed.
  func check() {
    if leastToRead > 1 {
      read()
      settle()
    }
    if timer.isOver(loop.clock.now, loop.limits, moved: { Socket.moved(stream.socket.number) }) { close() }
  }

  /// The number of bytes to wait for before the next `read`, at most the rest of the body.
  var leastToRead: Int32 {
    loop.buffers.pipe != nil && pipedReceiver != nil ? min(pace.least, Int32(clamping: parser.contentAhead)) : 1
  }

  /// Within a body, reads no bytes of the next request, so that none need to be copied.
  private var mostToRead: Int {
    let ahead = parser.contentAhead
    if ahead == 0 || request?.contentLength == nil { return mostRelayed ?? Self.mostAhead }
    return Int(min(ahead, Int64(mostRelayed ?? 256 << 10)))
  }

  func takeHeld() {
    if unparsed.isEmpty { return }
    var bytes = unparsed.take()
    bytes.withUnsafeMutableBytes { take($0) }
  }

  /// Parses the received bytes as far as the phase allows and other connections need not have their turn, and keeps the
  /// rest.
  private func take(_ bytes: UnsafeMutableRawBufferPointer) {
    unparsed.clear()
    var hasTurnLeft = false
    var received = ReceivedBytes(bytes)
    while readsRequest, !received.left.isEmpty || !parser.isBetweenRequests {
      if received.isTurnOver, !received.left.isEmpty {
        hasTurnLeft = true
        break
      }
      if !step(&received) { break }
    }
    if readsRequest, let content = received.takeContent() { receive(content) }
    if isLingering { return }
    unparsed.keep(UnsafeRawBufferPointer(received.left), hasTurnLeft: hasTurnLeft)
  }

  /// One step of the parser. Returns false if it needs more bytes.
  private func step(_ received: inout ReceivedBytes) -> Bool {
    switch parser.next(of: received.left) {
    case .more: return false
    case .framing(let count): received.skip(count)
    case .content(let count):
      if let earlier = received.addContent(count) { receive(earlier) }
    case .head(let count, let head):
      received.skip(count)
      received.notePiece()
      begin(head, hasMore: !received.left.isEmpty)
    case .end(let count, let trailers):
      received.skip(count)
      if let content = received.takeContent() { receive(content) }
      // Otherwise the receiver has refused the content.
      if readsRequest { end(trailers) }
    case .malformed(let problem):
      if let content = received.takeContent() { receive(content) }
      if !readsRequest { break }
      if case .receiving(let receiver) = phase { receiver.cut() }
      answer(Reply(ServerError(problem.status, problem.message)), closes: true)
    }
    return true
  }

  private func begin(_ head: RequestHead, hasMore: Bool) {
    timer.goOn(loop.clock.now)
    let request = Request(head, self)
    begin(request)
    follow(loop.handler.plan(request), bodyIsRead: false, hasMore: hasMore)
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) {
    notes?.received += Int64(bytes.count)
    guard case .receiving(let receiver) = phase else { return }
    do throws(ServerError) {
      try receiver.take(.bytes(bytes))
    } catch {
      refuseRest(error, receiver)
    }
  }

  /// Sends an error response in the middle of a body and closes: the rest of the body is not read.
  private func refuseRest(_ error: ServerError, _ receiver: any BodyReceiver) {
    receiver.cut()
    answer(Reply(error), closes: true)
  }

  private func end(_ trailers: HTTPHeaders) {
    switch phase {
    case .receiving(let receiver):
      phase = .head
      follow(receiver.end(trailers), bodyIsRead: true)
    case .discarding(let reply): answer(reply)
    default: preconditionFailure("no body is read")
    }
  }

  private func splice(to receiver: any BodyReceiver, _ pipe: SplicePipe) {
    do throws(ServerError) {
      let count = try move(to: receiver, pipe)
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      if count <= 0 { return close() }
      if parser.take(count) { end([:]) }
    } catch {
      refuseRest(error, receiver)
    }
  }

  /// Gives the receiver what has arrived and was too little to be reported, because the connection is about to close.
  func takeArrived() {
    if let pipe = loop.buffers.pipe, let receiver = pipedReceiver { _ = try? move(to: receiver, pipe) }
  }

  /// Moves available content from the socket to the receiver through the pipe, at most the pipe's capacity. Returns the
  /// number of bytes; like `recv`, 0 at the end and a negative number with `errno`.
  private func move(to receiver: any BodyReceiver, _ pipe: SplicePipe) throws(ServerError) -> Int {
    let count = pipe.fill(from: stream.socket, atMost: parser.contentAhead)
    if count <= 0 { return count }
    pace.came(count, at: loop.clock.now)
    loop.handler.received(count)
    notes?.received += Int64(count)
    do throws(ServerError) {
      try receiver.take(.piped(pipe.reader, count: count))
    } catch {
      pipe.empty()
      throw error
    }
    return count
  }
}
