import Blobs

/// Something that delivers the bytes of a resource in order, from the first one on, by calling back on a thread of its own.
/// PhotoKit's `PHAssetResourceManager` does it so.
public protocol ByteDelivery: Sendable {
  /// The current length and version of the resource. It blocks.
  /// Throws `.notFound` when the resource is gone, and `.permission` when the system refuses access.
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo

  /// Begins to deliver, from the first byte on, and returns at once with what stops it.
  ///
  /// `receive` is called with one piece after another, never by two threads at once. It blocks while there is no room for
  /// the piece, and returns false when no further piece is wanted. `end` is called once, after the last piece: with nil when
  /// that was the last byte, else with what went wrong. It may also be called before, with `.changed` or `.invalidated`,
  /// when the resource is no longer what it was. Neither is called after the returned closure has returned, except for a
  /// call that was under way.
  func start(
    receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool, end: @escaping @Sendable (BlobError?) -> Void
  ) -> @Sendable () -> Void
}

/// A source over a `ByteDelivery`. At most `capacity` bytes and the one piece that is being delivered are in memory.
///
/// It can be opened at any offset. Since a delivery begins with the first byte, the bytes before the offset are delivered
/// once more and dropped: opening is slow, but costs no memory.
public struct DeliveredSource: BlobSource {
  private let delivery: any ByteDelivery
  private let capacity: Int
  fileprivate let name: String

  /// `name` is how messages call the resource. `capacity` is in bytes.
  public init(_ delivery: any ByteDelivery, name: String, capacity: Int = 1 << 20) {
    self.delivery = delivery
    self.name = name
    self.capacity = capacity
  }

  public var access: BlobAccess { .random }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at \(name)")
    return try delivery.info(cancel)
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if offset < 0 { throw BlobError(.outOfRange, "open \(name) at byte \(offset)") }
    let info = try info(cancel)
    if let length = info.length, offset > length {
      throw BlobError(.outOfRange, "open \(name) at byte \(offset): it has \(length)")
    }
    let pipe = BlobPipe(capacity: capacity)
    let reader = try PipeSource(pipe).open(at: 0, cancel)
    let start = Monitor(Start.skipping(offset))
    let stop = delivery.start { piece in
      let wanted = start.update { $0.skip(piece) }
      do throws(BlobError) {
        try pipe.write(wanted)
        return true
      } catch {
        // The reader is gone.
        return false
      }
    } end: { failure in
      start.update { $0.end(failure) }
      if let failure { pipe.fail(failure) } else { pipe.finish() }
    }
    let delivered = DeliveredReader(reader, stop, info, at: offset, self, cancel)
    try waitForStart(start, offset, cancel)
    return delivered
  }

  private func waitForStart(_ start: Monitor<Start>, _ offset: Int64, _ cancel: Cancellation) throws(BlobError) {
    try cancel.whileWaiting(wakeUp: { start.update { _ in } }) { () throws(BlobError) in
      try start.wait { start throws(BlobError) -> Void? in
        try cancel.check("open \(name) at byte \(offset)")
        switch start {
        case .reached: return ()
        case .skipping(0): return ()
        case .skipping: return nil
        case .ended(let missing):
          throw BlobError(.outOfRange, "open \(name) at byte \(offset): it has \(offset - missing)")
        case .failed(let error): throw error
        }
      }
    }
  }

  /// How far a delivery is on its way to the offset at which the source was opened.
  private enum Start {
    /// So many bytes are still to be dropped.
    case skipping(Int64)
    case reached
    /// The end came so many bytes before the offset.
    case ended(missing: Int64)
    case failed(BlobError)

    /// Counts the next piece, and returns its bytes from the offset on.
    mutating func skip(_ piece: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
      guard case .skipping(let left) = self else { return piece }
      let dropped = Int(min(left, Int64(piece.count)))
      self = left > Int64(dropped) ? .skipping(left - Int64(dropped)) : .reached
      return UnsafeRawBufferPointer(rebasing: piece.dropFirst(dropped))
    }

    mutating func end(_ failure: BlobError?) {
      guard case .skipping(let left) = self, left > 0 else { return }
      self = failure.map { .failed($0) } ?? .ended(missing: left)
    }
  }

  /// Throws `.changed` when the resource is no longer the version that was opened.
  fileprivate func check(_ opened: BlobInfo, _ cancel: Cancellation) throws(BlobError) {
    let now = try info(cancel)
    if now.validator != opened.validator || now.length != opened.length {
      throw BlobError(.changed, "read \(name): it was changed meanwhile")
    }
  }
}

private final class DeliveredReader: BlobReader {
  let info: BlobInfo
  private let reader: any BlobReader
  private let stop: @Sendable () -> Void
  private let source: DeliveredSource
  private let cancel: Cancellation
  private let expected: ExpectedLength
  private var offset: Int64

  init(
    _ reader: any BlobReader, _ stop: @escaping @Sendable () -> Void, _ info: BlobInfo, at offset: Int64,
    _ source: DeliveredSource, _ cancel: Cancellation
  ) {
    self.reader = reader
    self.stop = stop
    self.info = info
    self.offset = offset
    self.source = source
    self.cancel = cancel
    expected = ExpectedLength(source.name, info.length)
  }

  deinit { stop() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.read(into: buffer)
    try expected.check(count, at: offset)
    offset += Int64(count)
    return count
  }

  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try source.check(info, cancel) }
}
