import Blobs
import Platform

/// Something that delivers the bytes of a resource in order, from the first one on, by calling back on a thread of its own.
/// PhotoKit's `PHAssetResourceManager` does it so.
public protocol ByteDelivery: Sendable {
  /// The current length and version of the resource. It blocks.
  /// Throws `.notFound` when the resource is gone, and `.permission` when the system refuses access.
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo

  /// Begins to deliver, from the first byte on, and returns with what stops it. It is called on a thread of its own, and
  /// should return at once; it may also deliver before it returns.
  ///
  /// `receive` is called with one piece after another, never by two threads at once. It blocks while there is no room for
  /// the piece, and returns false when no further piece is wanted. An empty piece, which any thread may pass at any time,
  /// only says that the system works on the delivery, for example that it downloads the resource. `end` is called once, after
  /// the last piece: with nil when that was the last byte, else with what went wrong. It may also be called before, with
  /// `.changed` or `.invalidated`, when the resource is no longer what it was. A delivery that releases both without having
  /// called `end` has failed with `.invalidated`, and so has one that calls neither for 30 minutes while a reader waits.
  /// Neither is called after the returned closure has returned, except for a call
  /// that was under way. The returned closure may wait for such a call: from then on `receive` does not block.
  func start(
    receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool, end: @escaping @Sendable (BlobError?) -> Void
  ) -> @Sendable () -> Void
}

/// A source over a `ByteDelivery`. At most `capacity` bytes and the one piece that is being delivered are in memory.
///
/// It can be opened at any offset. Since a delivery begins with the first byte, the bytes before the offset are delivered
/// once more and dropped, which is slow but costs no memory. So the delivery of a released reader is kept for the next
/// reader, which goes on with it if it begins where the earlier one stopped, or within the up to 64 KiB that the earlier one
/// has read in all, and the version is still the same. It is stopped when this value and its copies are released, when 32
/// others are kept, when a reader of another source has waited for its first piece for 10 s without a sign that the system
/// works on it, or after a minute without a reader.
public struct DeliveredSource: BlobSource {
  private let delivery: any ByteDelivery
  private let capacity: Int
  private let deliveries: KeptDeliveries
  fileprivate let owner: KeptDeliveries.Owner
  fileprivate let name: String

  /// `name` is how messages call the resource. `capacity` is in bytes.
  public init(_ delivery: any ByteDelivery, name: String, capacity: Int = 1 << 20) {
    self.init(delivery, name: name, capacity: capacity, .shared)
  }

  init(_ delivery: any ByteDelivery, name: String, capacity: Int = 1 << 20, _ deliveries: KeptDeliveries) {
    self.delivery = delivery
    self.name = name
    self.capacity = capacity
    self.deliveries = deliveries
    owner = KeptDeliveries.Owner(deliveries)
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
    if let kept = owner.take(at: offset, info) { return try DeliveredReader(kept, at: offset, self, cancel) }
    let pipe = BlobPipe(capacity: capacity)
    let bytes = PipeSource(pipe)
    let start = Monitor(DeliveryStart(skipping: offset))
    let running = run(DeliveryInput(pipe, start, name: name), bytes, from: offset, info)
    deliveries.watch(running)
    try running.pulse.whileWaiting { () throws(BlobError) in
      try wait(for: start, offset, cancel) { $0.isUnderWay }
      // The delivery may be that of a version which came after `info`.
      try check(info, cancel)
      try wait(for: start, offset, cancel) { start in
        if case .skipping(let left) = start.position { left == 0 } else { true }
      }
    }
    return try DeliveredReader(KeptDeliveries.Kept(delivery: running, offset: offset), at: offset, self, cancel)
  }

  private func run(
    _ input: DeliveryInput, _ bytes: PipeSource, from offset: Int64, _ info: BlobInfo
  ) -> RunningDelivery {
    let stop = DeliveryStop()
    // The delivery may call `receive` before its start returns. The thread that reads must not wait for that.
    let hasThread = SystemThread.startIfAllowed("delivery") { [delivery] in
      withAutoreleasePool { input.start(delivery, stop) }
    }
    if !hasThread { input.end(systemError(errno, "read \(name): start a thread")) }
    return RunningDelivery(bytes, from: offset, info, input.pulse) { [weak input] in
      input?.giveUp()
    } stop: { [weak input] in
      // Stopping may wait for a call of `receive`, which waits for room in the pipe.
      input?.close()
      stop.stop()
    }
  }

  /// Stops the delivery that is kept for the next reader.
  public func closeUntilNeeded() { owner.release() }

  /// Waits until the delivery is as `isReady` says. Throws if it ends before it has reached the offset.
  private func wait(
    for start: Monitor<DeliveryStart>, _ offset: Int64, _ cancel: Cancellation, _ isReady: (DeliveryStart) -> Bool
  ) throws(BlobError) {
    try cancel.whileWaiting(wakeUp: { start.update { _ in } }) { () throws(BlobError) in
      try start.wait { start throws(BlobError) -> Void? in
        try cancel.check("open \(name) at byte \(offset)")
        switch start.position {
        case .ended(let missing):
          throw BlobError(.outOfRange, "open \(name) at byte \(offset): it has \(offset - missing)")
        case .failed(let error): throw error
        case .skipping, .reached: return isReady(start) ? () : nil
        }
      }
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
  /// Bytes that are kept for a reader that begins at the same offset.
  private static let mostKept = 64 << 10

  let info: BlobInfo
  private let delivery: RunningDelivery
  private let source: DeliveredSource
  private let cancel: Cancellation
  private let expected: ExpectedLength
  /// Reads what the delivery brings; nil: an error has ended it.
  private var reader: (any BlobReader)?
  private var offset: Int64
  /// Bytes of an earlier reader, which come first.
  private var ahead: ArraySlice<UInt8>
  /// All bytes that were read; nil: they are too many.
  private var past: [UInt8]? = []

  init(
    _ kept: KeptDeliveries.Kept, at offset: Int64, _ source: DeliveredSource, _ cancel: Cancellation
  ) throws(BlobError) {
    delivery = kept.delivery
    info = kept.delivery.info
    self.source = source
    self.cancel = cancel
    self.offset = offset
    ahead = kept.before[...]
    expected = ExpectedLength(source.name, info.length)
    reader = try delivery.bytes.open(at: kept.offset - delivery.start, cancel)
  }

  deinit {
    guard reader != nil else { return }
    // The delivery's bytes can be opened once more only after this reader was released.
    reader = nil
    source.owner.keep(
      KeptDeliveries.Kept(
        delivery: delivery, offset: offset + Int64(ahead.count), before: (past ?? []) + ahead))
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    guard let reader else { throw failed }
    var count = min(buffer.count, ahead.count)
    if count > 0 {
      buffer.copyBytes(from: ahead.prefix(count))
      ahead.removeFirst(count)
    } else {
      do {
        count = try delivery.pulse.whileWaiting { () throws(BlobError) in try reader.read(into: buffer) }
        try expected.check(count, at: offset)
      } catch {
        self.reader = nil
        throw error
      }
    }
    offset += Int64(count)
    if past.map({ $0.count + count > Self.mostKept }) ?? true {
      past = nil
    } else {
      past?.append(contentsOf: buffer.prefix(count))
    }
    return count
  }

  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) {
    if reader == nil { throw failed }
    try source.check(info, cancel)
  }

  private var failed: BlobError { BlobError(.invalidated, "read \(source.name): its delivery has failed") }
}
