import BlobHTTP
import Blobs

extension ConnectionWorker {
  /// Calls `Exchange.prepare`, which may add to the request. Returns the error, or nil.
  func prepare(_ transfer: Transfer) -> TransportError? {
    guard let prepare = transfer.job.exchange.prepare else { return nil }
    let failure = outside(transfer) { () throws(BlobError) in
      try prepare(&transfer.request, transfer.job.cancellation)
    }
    return failure ?? transfer.request.problem(with: transfer.job.body)
  }

  /// Opens the body and learns its length.
  func openBody(_ transfer: Transfer) throws(TransportError) {
    guard let body = transfer.job.body else {
      transfer.body.length = 0
      return
    }
    let failure = outside(transfer) { () throws(BlobError) in
      let reader = try body.open(transfer.job.cancellation)
      transfer.body.reader = reader
      transfer.body.length = body.length ?? reader.info.length
      // An empty body is not read, so its reader must be finished here.
      if transfer.body.length == 0 { try reader.finish() }
    }
    if let failure { throw failure }
  }

  /// Reads once from the source.
  func read(_ transfer: Transfer, into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) {
    var count = 0
    let failure = outside(transfer) { () throws(BlobError) in count = try transfer.body.reader!.read(into: buffer) }
    if let failure { throw failure }
    if count == 0, let length = transfer.body.length, transfer.body.given < length {
      let message = "\(transfer.job.name): the source ended at byte \(transfer.body.given) of \(length)"
      throw TransportError(.source, message, cause: BlobError(.truncated, message))
    }
    transfer.body.given += Int64(count)
  }

  /// Runs code that may block for ever; a cancellation does not wait for it. Returns the error, or nil.
  func outside(_ transfer: Transfer, _ body: () throws(BlobError) -> Void) -> TransportError? {
    guard transfer.job.leave() else { return cancelled(transfer) }
    var failure: BlobError?
    do throws(BlobError) { try body() } catch { failure = error }
    guard transfer.job.enter() else { return cancelled(transfer) }
    guard let failure else { return nil }
    if failure.code == .cancelled { return TransportError(.cancelled, failure.message, cause: failure) }
    return TransportError(.source, "\(transfer.job.name): \(failure.message)", cause: failure)
  }

  /// Reopens the body, because a reused connection was dead and the request is sent again. false: the body cannot be
  /// reopened.
  func rewind(_ transfer: Transfer) throws(TransportError) -> Bool {
    guard transfer.job.body?.source.access != .sequential else { return false }
    let promised = transfer.body.length
    transfer.body.rewind()
    try openBody(transfer)
    if transfer.body.length == promised { return true }
    let message = "\(transfer.job.name): the source changed its length before it could be sent again"
    throw TransportError(.source, message, cause: BlobError(.changed, message))
  }
}
