import BlobHTTP
import Blobs

extension Transfer {
  /// Calls `Exchange.prepare`, which may add to the request. Returns the error, or nil.
  func prepare() -> TransportError? {
    guard let prepare = job.exchange.prepare else { return nil }
    let failure = outside { () throws(BlobError) in
      try prepare(&request, job.cancellation)
    }
    return failure ?? request.problem(with: job.body)
  }

  /// Opens the body and learns its length.
  func openBody() throws(TransportError) {
    guard let content = job.body else {
      body.length = 0
      return
    }
    let failure = outside { () throws(BlobError) in
      let reader = try content.open(job.cancellation)
      body.reader = reader
      body.length = content.length ?? reader.info.length
      // An empty body is not read, so its reader must be finished here.
      if body.length == 0 { try reader.finish() }
    }
    if let failure { throw failure }
  }

  /// Reads once from the source.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) {
    var count = 0
    let failure = outside { () throws(BlobError) in count = try body.reader!.read(into: buffer) }
    if let failure { throw failure }
    if count == 0, let length = body.length, body.given < length {
      let message = "\(job.name): the source ended at byte \(body.given) of \(length)"
      throw TransportError(.source, message, cause: BlobError(.truncated, message))
    }
    body.given += Int64(count)
  }

  /// Runs code that may block for ever; a cancellation does not wait for it. Returns the error, or nil.
  func outside(_ work: () throws(BlobError) -> Void) -> TransportError? {
    guard job.leave() else { return cancelled() }
    var failure: BlobError?
    do throws(BlobError) { try work() } catch { failure = error }
    guard job.enter() else { return cancelled() }
    guard let failure else { return nil }
    if failure.code == .cancelled { return TransportError(.cancelled, failure.message, cause: failure) }
    return TransportError(.source, "\(job.name): \(failure.message)", cause: failure)
  }

  /// Reopens the body, because a reused connection was dead and the request is sent again. false: the body cannot be
  /// reopened.
  func rewind() throws(TransportError) -> Bool {
    guard job.body?.source.access != .sequential else { return false }
    let promised = body.length
    body.rewind()
    try openBody()
    if body.length == promised { return true }
    let message = "\(job.name): the source changed its length before it could be sent again"
    throw TransportError(.source, message, cause: BlobError(.changed, message))
  }

  /// The most that the next read of the body can return into a buffer of `most` bytes.
  func wanted(_ most: Int) -> Int {
    max(1, min(most, body.length.map { Int(clamping: $0 - body.given) } ?? .max))
  }

  /// Hands the connection as much of the body as it accepts now.
  func advance(_ sending: any RequestBody) throws(TransportError) -> SendOutcome {
    var outcome = SendOutcome.moved
    let failure = outside { () throws(BlobError) in
      outcome = try sending.send(job.cancellation)
    }
    // Bytes may have left before the failure, and what the server answers to them may still be received.
    body.given = sending.sent
    if body.isChunked, sending.isComplete { body.hasEndedChunks = true }
    report(handedOver: sending.sent)
    if let failure { throw failure }
    return outcome
  }
}
