import BlobHTTP
import Blobs
import Platform

extension ConnectionWorker {
  /// Selects the cheapest way to send the body over this connection.
  func body(of transfer: Transfer, over wire: Connection) -> any RequestBody {
    var isTLS = true
    if case .plain = wire { isTLS = false }
    if transfer.body.isChunked {
      let (reader, trailers) = (transfer.body.reader ?? NoBytes(), transfer.job.exchange.trailers)
      takePiece(isTLS: isTLS)
      return CopiedBody(ChunkedFeed(reader, length: transfer.body.length, piece, trailers: trailers))
    }
    if !isTLS, let lent = SendfileBody(transfer.job.body!, transfer.body.reader!) { return lent }
    if !isTLS, let feed = aheadFeed(transfer) { return CopiedBody(feed) }
    takePiece(isTLS: isTLS)
    return CopiedBody(ReadFeed(transfer.body.reader!, length: transfer.body.length!, piece))
  }

  /// Makes `piece` as large as the budget allows.
  private func takePiece(isTLS: Bool) {
    if takenBuffer > 0 { return }
    let size = pool.takeBuffer(isTLS: isTLS, now: piece.count)
    // Twice the size, because the records need as much as the plain text.
    takenBuffer = isTLS ? size + pool.take(size) : size
    if size == piece.count { return }
    piece.deallocate()
    // With a larger alignment, glibc before 2.38 does not reuse freed buffers of this size: each allocation takes new
    // memory.
    piece = .allocate(byteCount: size, alignment: 16)
  }

  /// Returns the exchange's bytes to the budget. If many workers are busy, they do not keep large buffers for their
  /// next bodies: together these would need many times the budget.
  func giveBackPiece() {
    pool.returnBuffer(takenBuffer)
    if piece.count > 64 << 10, !pool.smallBuffers.mayBeKept {
      piece.deallocate()
      piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }
  }

  /// nil: reading ahead would not pay, or the rest of the budget is too small.
  private func aheadFeed(_ transfer: Transfer) -> (any BodyFeed)? {
    let length = transfer.body.length!
    // A thread that reads ahead would wait for the rate limit in place of the worker, at which that is no gain.
    guard transfer.body.reader!.info.readAhead > 0, length >= Self.leastAhead, transfer.job.grant == nil else {
      return nil
    }
    let size = pool.takeBuffer(isTLS: false, budget: 4 << 20)
    guard size >= Self.leastAlone else {
      pool.returnBuffer(size)
      return nil
    }
    // Larger than for a single thread, because each hand-over of a piece wakes a thread.
    let piece = 2 * size
    let taken = size + pool.take(ReadAheadFeed.pieces * piece - size)
    let reader = transfer.body.takeReader()!
    return ReadAheadFeed(reader, length: length, piece: piece) { [pool] in pool.returnBuffer(taken) }
  }

  /// Shorter bodies are read before another thread has started.
  private static var leastAhead: Int64 { 4 << 20 }
  /// If so many transfers run that each gets less, reading for one of them does not delay the others.
  private static var leastAlone: Int { 256 << 10 }

  /// The most that the next read of the body can return.
  func wanted(_ transfer: Transfer) -> Int {
    max(1, min(piece.count, transfer.body.length.map { Int(clamping: $0 - transfer.body.given) } ?? .max))
  }

  /// Hands the connection as much of the body as it accepts now.
  func advance(_ body: any RequestBody, _ transfer: Transfer) throws(TransportError) -> SendOutcome {
    var outcome = SendOutcome.moved
    let failure = outside(transfer) { () throws(BlobError) in
      outcome = try body.send(transfer.job.cancellation)
    }
    // Bytes may have left before the failure, and what the server answers to them may still be received.
    transfer.body.given = body.sent
    if transfer.body.isChunked, body.isComplete { transfer.body.hasEndedChunks = true }
    report(transfer, handedOver: body.sent)
    if let failure { throw failure }
    return outcome
  }
}

/// The reader of a request without a body, whose head is followed by trailers only.
private final class NoBytes: BlobReader {
  var info: BlobInfo { BlobInfo(length: 0) }
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { 0 }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) {}
}
