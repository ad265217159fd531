import BlobHTTP
import BlobUpload
import Blobs
import Synchronization

/// The transport of one upload. It gives requests with bodies to the system, which sends them even if the app is
/// terminated meanwhile. A request that an earlier process has left to the system is not sent again: its response is
/// waited for instead.
final class PieceTransport: Transport {
  /// How often the system may resume one request.
  private static let mostResumptions = 16

  let service: BackgroundService
  let upload: String
  let version: String
  /// The largest body in bytes.
  private let pieceBytes: Int64
  private let clock: DeferringClock
  /// The source could not be read when it was tried last, and may be there again later.
  private let isSourceLost = Atomic(false)
  /// Called with the length of the source once a piece has its last byte. On any thread.
  private let ended: @Sendable (Int64) -> Void
  /// Called with the offset in the source up to which bytes were sent. On any thread.
  private let sent: @Sendable (Int64) -> Void

  init(
    _ service: BackgroundService, upload: String, version: String, pieceBytes: Int64, clock: DeferringClock,
    ended: @escaping @Sendable (Int64) -> Void, sent: @escaping @Sendable (Int64) -> Void
  ) {
    self.service = service
    self.upload = upload
    self.version = version
    self.pieceBytes = pieceBytes
    self.clock = clock
    self.ended = ended
    self.sent = sent
  }

  func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    if let problem = request.problem(with: body) { throw problem }
    if body != nil { await waitForSource() }
    if Task.isCancelled { throw cancelled(request) }
    let delay = clock.takeDelay()
    let label = TaskLabel(upload: upload, version: version, request, body: body)
    if let response = try await adopt(label, request, body, on) { return response }
    if label.kind != .question {
      await service.cancelled.wait(
        upload, otherThan: version, in: service.session, within: service.cancelling)
      if Task.isCancelled { throw cancelled(request) }
    }
    var request = request
    if let prepare = on.prepare { request = try await prepared(request, prepare) }
    if let body { return try await sendPiece(label, request, body, after: delay, on) }
    if delay == .zero || on.received != nil {
      do { return try await service.direct.send(request, body: nil, on) } catch {
        // The system waits until the network is there; this process may not live so long.
        guard [.resolve, .connect].contains(error.code), on.received == nil, !Task.isCancelled else { throw error }
      }
    }
    return try await run(label, request, after: delay, isWhole: false)
  }

  // MARK: Requests of an earlier process

  /// Waits for the response to the same request of an earlier process, if there is one. Requests that contradict this
  /// one are cancelled, or waited for where the server must not get both at once.
  private func adopt(
    _ label: TaskLabel, _ request: HTTPRequest, _ body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse? {
    var response: HTTPResponse?
    var isUnsure = false
    for old in service.registry.pending(upload) {
      if old.isSame(as: label) {
        if let body, try await !has(body, as: old, request) {
          service.discard(old)
        } else {
          if let length = old.length {
            on.sent(Int(length))
            if request.endsUpload { ended(old.start.addingClamped(length)) }
          }
          follow(old)
          response = try await self.response(to: old, request, isWhole: request.isWholeCreation(from: old.start))
          // The request of the earlier process had that process's credentials. The present ones are tried at once.
          if let refusal = response, refusal.refusesCredentials {
            throw TransportError(
              .broken, "\(request.method) \(request.url): the credentials of an earlier launch were refused")
          }
        }
      } else if old.version == version, old.kind == .append, old.place == label.place {
        // The server would refuse one of the two, or tell an offset that is about to change.
        follow(old)
        _ = await service.registry.end(of: old)
        service.discard(old)
        if Task.isCancelled { throw cancelled(request) }
        isUnsure = label.kind == .append
      } else if old.kind != .create || label.kind != .question || old.version != version {
        service.discard(old)
      }
    }
    if isUnsure, response == nil {
      throw TransportError(.broken, "\(request.method) \(request.url): another request has sent bytes of this upload")
    }
    return response
  }

  private func follow(_ label: TaskLabel) {
    service.registry.follow(label) { [sent] total in sent(label.start.addingClamped(total)) }
  }

  private func has(
    _ body: BlobSlice, as label: TaskLabel, _ request: HTTPRequest
  ) async throws(TransportError) -> Bool {
    try await reading(request) { [spool = service.spool] cancel throws(BlobError) in
      try spool.has(body, as: label, cancel)
    }
  }

  // MARK: New requests

  private func sendPiece(
    _ label: TaskLabel, _ request: HTTPRequest, _ body: BlobSlice, after delay: Duration, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    let spool = service.spool
    let most = body.length ?? pieceBytes
    if most > spool.bound {
      throw TransportError(
        .badRequest, "\(request.method) \(request.url): a body of \(most) bytes, and the spool has \(spool.bound)")
    }
    guard await spool.reserve(most) else { throw cancelled(request) }
    let piece: TaskLabel
    let handover = PieceHandover()
    do {
      piece = try await reading(request) { cancel throws(BlobError) in
        try spool.write(body, as: label, atMost: most, cancel, handover)
      }
    } catch {
      if case .ended(let piece) = handover.abandon() { spool.giveBack(piece, room: most) }
      throw error
    }
    let length = piece.length ?? 0
    spool.release(most - length)
    // A body of unknown length is as long as a piece may be, unless the source has ended.
    if request.endsUpload || body.length == nil && length < most { ended(piece.start + length) }
    // The journal must know how far bytes were sent before the server can have them.
    on.sent(Int(length))
    return try await run(piece, request, after: delay, isWhole: request.isWholeCreation(from: piece.start))
  }

  private func run(
    _ label: TaskLabel, _ request: HTTPRequest, after delay: Duration, isWhole: Bool
  ) async throws(TransportError) -> HTTPResponse {
    do { try await checkPiece(label, request) } catch {
      service.forget(label)
      throw error
    }
    service.registry.add(label) { [sent] total in sent(label.start.addingClamped(total)) }
    service.tasks.start(task(label, request, after: delay))
    return try await response(to: label, request, isWhole: isWhole)
  }

  /// The system ends the app if it cannot read the file with a body, for example because the device is locked and the app
  /// has chosen a protection class that forbids it.
  private func checkPiece(_ label: TaskLabel, _ request: HTTPRequest) async throws(TransportError) {
    guard label.length != nil else { return }
    // Slow sources may have all threads of the service, and the app may be suspended soon.
    let problem = await BlockingPool.shared.run { [spool = service.spool] in spool.problem(reading: label) }
    guard let problem else { return }
    throw TransportError(.broken, "\(request.method) \(request.url): \(problem.message)", cause: problem)
  }

  private func task(_ label: TaskLabel, _ request: HTTPRequest, after delay: Duration) -> BackgroundTask {
    BackgroundTask(
      label: label.text, request: request, body: label.length.map { _ in service.spool.path(of: label) },
      length: label.length ?? 0, delay: delay)
  }

  /// Waits for the end of a task, and deletes its piece. `isWhole`: the body is the whole file, so the system may resume
  /// the request by itself. It knows nothing of the bytes before a later piece.
  private func response(
    to label: TaskLabel, _ request: HTTPRequest, isWhole: Bool
  ) async throws(TransportError) -> HTTPResponse {
    var hasEnded = false
    defer { if hasEnded { service.forget(label) } else { service.discard(label) } }
    var resumptions = 0
    while let end = await service.registry.end(of: label) {
      hasEnded = true
      switch end {
      case .response(let response, let unsent):
        let length = label.length ?? 0
        let early = response.head.earlySuccess(
          to: "\(request.method) \(request.url)", from: "the server", sent: max(0, length - unsent), of: length,
          isWhole: unsent <= 0)
        if let early { throw early }
        return response
      case .failed(_, let data?) where isWhole && resumptions < Self.mostResumptions:
        resumptions += 1
        try await checkPiece(label, request)
        hasEnded = false
        service.registry.add(label) { [sent] total in sent(label.start.addingClamped(total)) }
        service.tasks.resume(data, task(label, request, after: .zero))
      case .failed(let error, _):
        if Task.isCancelled { throw cancelled(request) }
        // The system has ended the task by itself, as when the user ends the app in the app switcher.
        if error.code == .cancelled {
          throw TransportError(.broken, error.message, cause: error.cause)
        }
        throw error
      }
    }
    if Task.isCancelled { throw cancelled(request) }
    throw TransportError(.broken, "\(request.method) \(request.url): the system no longer knows the request")
  }

  // MARK: Reading

  /// Waits for the pause after a failure of the source. The system cannot wait in place of this process, because it reads
  /// no sources. While the app is suspended nothing happens; the app is not kept awake.
  func waitForSource() async {
    guard isSourceLost.load(ordering: .relaxed), case let delay = clock.takeDelay(), delay > .zero
    else { return }
    service.wakeUp.leave()
    // The callers find out by themselves whether the task was cancelled.
    try? await Task.sleep(for: delay)
    service.wakeUp.enter()
  }

  func noteReading(_ error: BlobError?) {
    isSourceLost.store(error?.code == .invalidated, ordering: .relaxed)
  }

  private func prepared(
    _ request: HTTPRequest, _ prepare: @escaping Exchange.Preparation
  ) async throws(TransportError) -> HTTPRequest {
    try await reading(request) { cancel throws(BlobError) in
      var request = request
      try prepare(&request, cancel)
      return request
    }
  }

  private func reading<Value: Sendable>(
    _ request: HTTPRequest, _ body: @escaping @Sendable (Cancellation) throws(BlobError) -> Value
  ) async throws(TransportError) -> Value {
    typealias Outcome = Result<Value, BlobError>
    let outcome = await service.threads.runUntilCancelled { cancel in
      Outcome { () throws(BlobError) in try body(cancel) }
    }
    guard let outcome else { throw cancelled(request) }
    do throws(BlobError) {
      let value = try outcome.get()
      noteReading(nil)
      return value
    } catch {
      noteReading(error)
      throw TransportError(
        error.code == .cancelled ? .cancelled : .source, "\(request.method) \(request.url): \(error.message)",
        cause: error)
    }
  }

  private func cancelled(_ request: HTTPRequest) -> TransportError {
    TransportError(.cancelled, "\(request.method) \(request.url): cancelled")
  }
}

extension TaskLabel {
  /// Whether both are the same request for the same bytes.
  fileprivate func isSame(as other: TaskLabel) -> Bool {
    version == other.version && kind == other.kind && place == other.place && start == other.start
      && (length == nil) == (other.length == nil)
  }
}

extension HTTPRequest {
  /// Whether the request creates an upload with all its bytes, by the IETF's protocol.
  fileprivate func isWholeCreation(from start: Int64) -> Bool {
    start == 0 && headers["Upload-Offset"] == nil && endsUpload
  }

  /// Whether the body has the last bytes of an upload whose length was not known before. By tus, its request is the first
  /// that tells the length.
  fileprivate var endsUpload: Bool {
    StructuredField.boolean(headers["Upload-Complete"]) == true
      || headers["Upload-Offset"] != nil && headers["Upload-Length"] != nil
  }
}
