/// The reading end of a `BlobPipe`. It is a sequential source, which can be opened only where its last reader stopped.
///
/// Create one per pipe. When the source and its readers are released, the writer is woken with an error.
public struct PipeSource: BlobSource {
  private let end: End
  private let info: BlobInfo
  public var access: BlobAccess { .sequential }

  /// `length` is the promised length: fewer bytes are `.truncated`, more are `.changed`; nil accepts any length.
  public init(_ pipe: BlobPipe, length: Int64? = nil) {
    self.init(pipe, length: length, whenGone: {})
  }

  /// `whenGone` is called when the source and its readers have been released.
  init(_ pipe: BlobPipe, length: Int64?, whenGone: @escaping @Sendable () -> Void) {
    end = End(pipe.ring, whenGone)
    info = BlobInfo(length: length)
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at a pipe")
    return info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open a pipe")
    try end.ring.open(at: offset)
    return PipeReader(end, info, at: offset, cancel)
  }

  /// Shared by the source and its readers. Its `deinit`, after the last of them is released, notifies the writer.
  fileprivate final class End: Sendable {
    let ring: PipeRing
    private let whenGone: @Sendable () -> Void
    init(_ ring: PipeRing, _ whenGone: @escaping @Sendable () -> Void) {
      self.ring = ring
      self.whenGone = whenGone
    }
    deinit {
      ring.readerIsGone()
      whenGone()
    }
  }
}

private final class PipeReader: BlobReader {
  let info: BlobInfo
  private let end: PipeSource.End
  private let cancel: Cancellation
  private var offset: Int64

  init(_ end: PipeSource.End, _ info: BlobInfo, at offset: Int64, _ cancel: Cancellation) {
    self.end = end
    self.info = info
    self.offset = offset
    self.cancel = cancel
  }

  deinit { end.ring.closed() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    let bytes = try waiting()
    let count = min(bytes.count, buffer.count)
    try promised.check(count, at: offset)
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
    end.ring.took(count)
    offset += Int64(count)
    return count
  }

  func fileRegion() -> FileRegion? { nil }

  /// After the last promised byte, this waits for the writer to confirm that it was the last.
  func finish() throws(BlobError) {
    if offset == info.length { try promised.check(waiting().count, at: offset) }
  }

  private var promised: ExpectedLength { ExpectedLength("a pipe", info.length) }

  private func waiting() throws(BlobError) -> UnsafeRawBufferPointer {
    try cancel.whileWaiting(wakeUp: end.ring.wake) { () throws(BlobError) in try end.ring.waitForBytes(cancel) }
  }
}
