import BlobHTTP
import Blobs
import CMicrohttpd
import Synchronization

/// One request, from its first line to the end of its answer.
///
/// libmicrohttpd calls with the head, with each piece of the body, and at the end. An answer given in the first call
/// closes the connection, so what has no body is answered in the last.
final class Request: @unchecked Sendable {
  // The event thread alone uses it, except for `decision`, which a worker sets while the connection is suspended.
  let target: [UInt8]
  private(set) var method = ""
  private(set) var headers = HTTPHeaders()
  private(set) var isHTTP11 = true
  private let connection: Connection
  private let service: Service
  /// Where the target ends in libmicrohttpd's buffer, valid until the head is read.
  private var targetEnd: UnsafePointer<CChar>?

  private enum Phase {
    case head
    case waiting
    case ready(Reply)
    case receiving(any BodyReceiver)
    /// A short body is read and dropped, so that the connection can go on.
    case discarding(Reply)
    case answered
    /// libmicrohttpd has lost it to the pump.
    case detached
  }
  private var phase = Phase.head
  private var isHeadDone = false
  private var lingers = false
  /// Bytes of the body.
  private var received: Int64 = 0
  private let decision = Mutex<Plan?>(nil)
  /// That of the answer: the request lives until it was sent.
  private var permits: [Allowance.Permit] = []

  /// `target`: in libmicrohttpd's buffer, where it stays until the head is read.
  init(_ connection: Connection, target: UnsafePointer<CChar>, _ service: Service) {
    self.connection = connection
    self.target = BytePath(cString: target).bytes
    self.service = service
    targetEnd = target + self.target.count
    service.gate.enter()
  }

  /// Bytes of the body that the head promises; nil: the end will tell. A malformed number is refused by libmicrohttpd.
  private(set) var contentLength: Int64? = 0
  var isChunked: Bool { headers["Transfer-Encoding"] != nil }
  private var hasBody: Bool { contentLength != 0 }

  /// The head is complete, or the body is, or a worker has decided.
  func advance(_ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>) -> MHD_Result {
    switch phase {
    case .head:
      connection.watch?.goOn()
      self.method = String(cString: method)
      isHTTP11 = String(cString: version) != "HTTP/1.0"
      let head = connection.head(method, version)
      headers = head.headers
      contentLength = isChunked ? nil : headers["Content-Length"].map { Int64($0) ?? .max } ?? 0
      if let problem = problem(of: head, version) { return refuse(problem) }
      return follow(Router.plan(self, service))
    case .waiting:
      let plan = decision.withLock { decision in
        defer { decision = nil }
        return decision
      }
      guard let plan else { return .NO }
      return follow(plan)
    case .receiving(let receiver):
      isHeadDone = true
      phase = .answered
      return follow(end(receiver))
    case .ready(let reply), .discarding(let reply):
      return queue(reply)
    case .answered, .detached:
      return .YES
    }
  }

  /// Why the head cannot be relied on; nil: it can.
  private func problem(of head: HeadCheck, _ version: UnsafePointer<CChar>) -> ServerError? {
    // Up to the version's blank, with no NUL in between.
    let isWholeTarget = !HeadCheck.readsLines || targetEnd.map { $0 + 1 } == version
    targetEnd = nil
    if !isWholeTarget { return ServerError(400, "the request's target has a NUL or a blank in it") }
    if let problem = head.problem { return ServerError(400, problem) }
    return HeadCheck.framingProblem(method, headers, isHTTP11: isHTTP11)
  }

  /// Answers and closes the connection: where the next request begins is not known.
  private func refuse(_ problem: ServerError) -> MHD_Result {
    lingers = true
    return queue(Reply(problem, ["Connection": "close"]))
  }

  private func end(_ receiver: any BodyReceiver) -> Plan {
    let trailers = isChunked ? connection.trailers : HeadCheck()
    guard let problem = trailers.problem else { return receiver.end(trailers.headers) }
    receiver.cut()
    lingers = true
    return .reply(Reply(ServerError(400, problem), ["Connection": "close"]))
  }

  private func follow(_ plan: Plan) -> MHD_Result {
    switch plan {
    case .receive(let receiver):
      phase = .receiving(receiver)
    case .later(let start):
      guard service.gate.suspend(connection) else { return .NO }
      phase = .waiting
      start { [self] plan in
        decision.withLock { $0 = plan }
        service.gate.resume(connection)
      }
      return .YES
    case .reply(let reply):
      if isHeadDone { return queue(reply) }
      if !hasBody {
        phase = .ready(reply)
      } else if let length = contentLength, length <= 64 << 10, headers["Expect"] == nil {
        phase = .discarding(reply)
      } else {
        lingers = true
        return queue(reply)
      }
    }
    isHeadDone = true
    return .YES
  }

  private func queue(_ reply: Reply) -> MHD_Result {
    phase = .answered
    permits = reply.permits
    if case .file(let item, let range) = reply.body { connection.watch?.sends(item.file, upTo: range.upperBound) }
    return connection.queue(service.completed(reply, to: self))
  }

  /// The client has closed the connection, or its half of it. While a worker decides; any thread may call.
  var clientHasGone: Bool { connection.isAtEnd }

  /// Sends an interim answer, while the answer is planned. false: it is empty, or the client knows of none, as with HTTP/1.0.
  /// RFC 9110 §15.2.
  func inform(_ interim: [UInt8]) -> Bool {
    guard isHTTP11, !interim.isEmpty else { return false }
    connection.write(interim)
    return true
  }

  /// As `inform`, in the middle of the body, on the event thread. false: also where it cannot be sent at once.
  func inform(orSkip interim: [UInt8]) -> Bool { connection.isQuiet && inform(interim) }

  /// A piece of the body. `NO` closes the connection.
  func take(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
    guard case .receiving(let receiver) = phase else { return .YES }
    do throws(ServerError) {
      try receiver.take(.bytes(bytes))
      received += Int64(bytes.count)
      if received != contentLength { detach(receiver) }
      return .YES
    } catch {
      phase = .answered
      receiver.cut()
      lingers = true
      connection.write(service.completed(Reply(error), to: self).text(to: method, keepsConnection: false))
      return .NO
    }
  }

  /// The answer was sent, or the connection broke.
  func ended() {
    if case .detached = phase { return }
    connection.watch?.isDone(service.watch.limits)
    if case .receiving(let receiver) = phase { receiver.cut() }
    if case .receive(let receiver) = decision.withLock({ $0 }) { receiver.cut() }
    if lingers, let socket = connection.duplicate() { service.housekeeper.linger(socket) }
    service.gate.leave()
  }

  // MARK: Large bodies

  /// Gives the rest of the body to the pump, with the connection, if there is enough of it.
  private func detach(_ receiver: any BodyReceiver) {
    guard receiver.takesPipes, !connection.isEncrypted, let length = contentLength,
      length - received >= BodyPump.threshold
    else { return }
    if let watched = connection.watch { service.watch.detached(watched) }
    guard let socket = service.gate.detach(connection, leaving: service.deadSocket) else { return }
    phase = .detached
    let watched = service.watch.opened(socket.number, tellsEnd: false)
    watched.goOn()
    let body = PumpedBody(socket, receiver, length: length - received) { outcome in
      self.service.watch.closed(watched)
      switch outcome {
      case .whole(let plan): self.follow(plan, on: socket)
      case .refused(let error): self.finish(Reply(error), on: socket, keepsConnection: false)
      case .broken: self.service.gate.leave()
      }
    }
    if !service.pump.take(body) {
      service.watch.closed(watched)
      receiver.cut()
      service.gate.leave()
    }
  }

  /// On any thread, after the body.
  private func follow(_ plan: Plan, on socket: Descriptor) {
    switch plan {
    case .later(let start): start { self.follow($0, on: socket) }
    case .reply(let reply):
      let asksToClose = headers.list("Connection").contains { $0.isSameField("close") }
      finish(reply, on: socket, keepsConnection: isHTTP11 && !asksToClose)
    case .receive: preconditionFailure("the body was received already")
    }
  }

  /// Answers what libmicrohttpd does not know of any more.
  private func finish(_ reply: Reply, on socket: Descriptor, keepsConnection: Bool) {
    let text = service.completed(reply, to: self).text(to: method, keepsConnection: keepsConnection)
    service.housekeeper.send(text, on: socket) { [self] isSent in
      if !isSent || !keepsConnection || !service.gate.attach(socket) { service.housekeeper.close(socket) }
      service.gate.leave()
    }
  }
}
