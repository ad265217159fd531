import BlobHTTP
import Blobs
import Platform

/// The buffers of a worker.
struct WorkerBuffers: ~Copyable {
  /// Bodies shorter than this are read completely and sent with the head.
  static let smallBody: Int64 = 64 << 10
  /// The size of the shared buffers for heads; longer heads get their own buffer.
  static let longestHead = 8 << 10

  private let pool: ConnectionPool
  /// The buffer from which heads and small bodies are sent together. Borrowed from the pool, or allocated for an
  /// unusually long head.
  private(set) var small = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Received bytes of a response. Allocated for the first response.
  private(set) var response = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Buffer for a body that is read before it is sent. Allocated for the first body that needs it.
  private(set) var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Bytes of the pool's budget that the current exchange uses.
  private var takenBuffer = 0

  init(_ pool: ConnectionPool) { self.pool = pool }

  deinit {
    response.deallocate()
    if !small.isEmpty {
      if small.count == pool.smallBuffers.size { pool.smallBuffers.give(small) } else { small.deallocate() }
    }
    piece.deallocate()
  }

  /// Frees the large buffers of an idle worker, which the pool no longer counts.
  mutating func rest() {
    giveBackSmall()
    piece.deallocate()
    piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  /// An exchange begins, which uses nothing of the budget yet.
  mutating func begin() { takenBuffer = 0 }

  /// Provides `small`. A head that is longer than most gets a larger buffer for this request.
  mutating func takeSmall(for request: HTTPRequest, by relay: Proxy?) {
    var size = request.mostHeadBytes + pool.options.userAgent.utf8.count
    if let relay { size += (relay.basicCredentials?.utf8.count ?? 0) + request.url.host.utf8.count * 4 + 64 }
    let excess = size - Self.longestHead
    if excess > 0 {
      giveBackSmall()
      small = .allocate(byteCount: pool.smallBuffers.size + excess, alignment: 16)
    } else if small.isEmpty {
      small = pool.smallBuffers.take()
    }
  }

  mutating func giveBackSmall() {
    if small.isEmpty { return }
    if small.count == pool.smallBuffers.size { pool.smallBuffers.give(small) } else { small.deallocate() }
    small = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  /// Most responses are short, and each worker has a response buffer: one that is full grows to the longest permitted line.
  mutating func makeRoom(after held: Int) {
    let size = response.isEmpty ? 4 << 10 : ResponseFraming.longestLine
    if size == response.count { return }
    let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: response[..<held]))
    response.deallocate()
    response = larger
  }

  /// Selects the cheapest way to send the body over this connection.
  mutating func body(of transfer: Transfer, over wire: Connection) -> any RequestBody {
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
  private mutating func takePiece(isTLS: Bool) {
    if takenBuffer > 0 { return }
    let size = pool.budget.takeBuffer(isTLS: isTLS, now: piece.count)
    // Twice the size, because the records need as much as the plain text.
    takenBuffer = isTLS ? size + pool.budget.take(size) : size
    if size == piece.count { return }
    piece.deallocate()
    // With a larger alignment, glibc before 2.38 does not reuse freed buffers of this size: each allocation takes new
    // memory.
    piece = .allocate(byteCount: size, alignment: 16)
  }

  /// Returns the exchange's bytes to the budget. If many workers are busy, they do not keep large buffers for their
  /// next bodies: together these would need many times the budget.
  mutating func giveBackPiece() {
    pool.budget.returnBuffer(takenBuffer)
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
    let size = pool.budget.takeBuffer(isTLS: false, budget: 4 << 20)
    guard size >= Self.leastAlone else {
      pool.budget.returnBuffer(size)
      return nil
    }
    // Larger than for a single thread, because each hand-over of a piece wakes a thread.
    let piece = 2 * size
    let taken = size + pool.budget.take(ReadAheadFeed.pieces * piece - size)
    let reader = transfer.body.takeReader()!
    return ReadAheadFeed(reader, length: length, piece: piece) { [pool] in pool.budget.returnBuffer(taken) }
  }

  /// Shorter bodies are read before another thread has started.
  private static var leastAhead: Int64 { 4 << 20 }
  /// If so many transfers run that each gets less, reading for one of them does not delay the others.
  private static var leastAlone: Int { 256 << 10 }
}

/// The reader of a request without a body, whose head is followed by trailers only.
private final class NoBytes: BlobReader {
  var info: BlobInfo { BlobInfo(length: 0) }
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int { 0 }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) {}
}
