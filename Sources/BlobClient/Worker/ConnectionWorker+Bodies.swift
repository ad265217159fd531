#if os(Linux)
  import BlobHTTP
  import Blobs
  import Platform

  extension ConnectionWorker {
    /// The cheapest way in which the body can leave over this connection.
    func body(of transfer: Transfer, over wire: Connection) -> any RequestBody {
      var isTLS = true
      if case .plain = wire { isTLS = false }
      if transfer.isChunked {
        let (reader, trailers) = (transfer.reader ?? NoBytes(), transfer.job.exchange.trailers)
        takePiece(isTLS: isTLS)
        return CopiedBody(ChunkedFeed(reader, length: transfer.length, piece, trailers: trailers))
      }
      if !isTLS, let lent = SendfileBody(transfer.job.body!, transfer.reader!) { return lent }
      if !isTLS, let feed = aheadFeed(transfer) { return CopiedBody(feed) }
      takePiece(isTLS: isTLS)
      return CopiedBody(ReadFeed(transfer.reader!, length: transfer.length!, piece))
    }

    /// Makes `piece` as large as the budget allows.
    private func takePiece(isTLS: Bool) {
      if takenBuffer > 0 { return }
      let size = pool.takeBuffer(isTLS: isTLS, now: piece.count)
      // As much again for the records.
      takenBuffer = isTLS ? size + pool.take(size) : size
      if size == piece.count { return }
      piece.deallocate()
      // With a larger alignment glibc before 2.38 finds no use for a buffer of this size that was freed: each one takes
      // new memory.
      piece = .allocate(byteCount: size, alignment: 16)
    }

    /// Returns what an exchange took of the budget. Where many workers are busy, none keeps a large buffer for its next
    /// body: all of them together would have many times the budget.
    func giveBackPiece() {
      pool.returnBuffer(takenBuffer)
      if piece.count > 64 << 10, !pool.smallBuffers.mayBeKept {
        piece.deallocate()
        piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
      }
    }

    /// nil: it would not pay, or there is too little memory left for it.
    private func aheadFeed(_ transfer: Transfer) -> (any BodyFeed)? {
      let length = transfer.length!
      guard transfer.reader!.info.readAhead > 0, length >= Self.leastAhead else { return nil }
      let size = pool.takeBuffer(isTLS: false, budget: 4 << 20)
      guard size >= Self.leastAlone else {
        pool.returnBuffer(size)
        return nil
      }
      // Larger than for one thread: each time a piece is handed over somebody is woken.
      let piece = 2 * size
      let taken = size + pool.take(AheadFeed.pieces * piece - size)
      let reader = transfer.reader.take()!
      transfer.isReadAhead = true
      return AheadFeed(reader, length: length, piece: piece) { [pool] in pool.returnBuffer(taken) }
    }

    /// Less is read before another thread has begun.
    private static var leastAhead: Int64 { 4 << 20 }
    /// Where so many are under way that there is less for each, they do not wait for each other.
    private static var leastAlone: Int { 256 << 10 }

    /// Hands the connection what it takes now.
    func advance(_ body: any RequestBody, _ transfer: Transfer) throws(TransportError) -> SendOutcome {
      var outcome = SendOutcome.moved
      let failure = outside(transfer) { () throws(BlobError) in
        outcome = try body.send(transfer.job.cancellation)
      }
      if let failure { throw failure }
      transfer.given = body.sent
      if transfer.isChunked, body.isComplete { transfer.hasEndedChunks = true }
      report(transfer, handedOver: body.sent)
      return outcome
    }
  }

  /// The reader of a request without a body, whose trailers alone follow its head.
  private final class NoBytes: BlobReader {
    var info: BlobInfo { BlobInfo(length: 0) }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { 0 }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {}
  }
#endif
