/// Reads a source in blocks, however small the caller's reads are, where `preferredRead` says that this pays.
///
/// When a reader is released, its buffered bytes are lost; for a sequential source they cannot be read again.
public struct BufferedSource: BlobSource {
  private let source: any BlobSource
  private let block: Int

  /// Reads at least `block` bytes at a time, or `preferredRead` if that is larger. If `preferredRead` is 0, nothing is
  /// buffered.
  public init(_ source: any BlobSource, block: Int = 128 << 10) {
    precondition(block > 0)
    self.source = source
    self.block = block
  }

  public var access: BlobAccess { source.access }

  /// Like the source's, except `preferredRead`, which is 0: small reads are cheap now.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel).buffered }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openBuffered(at: offset, cancel)
  }

  /// Like `open`, for callers that need to seek or to access the buffered block.
  public func openBuffered(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> BufferedReader {
    try openBuffered(at: offset, always: false, cancel)
  }

  /// With `always`, the reader uses blocks whatever the source prefers. For readers that are filled ahead of their use.
  package func openBuffered(
    at offset: Int64, always: Bool, _ cancel: Cancellation
  ) throws(BlobError) -> BufferedReader {
    try BufferedReader(source, at: offset, block, always: always, cancel)
  }
}

/// A reader with a buffered block of bytes.
public final class BufferedReader: BlobReader {
  public let info: BlobInfo
  private let source: any BlobSource
  private let cancel: Cancellation
  private var reader: any BlobReader
  /// Empty if buffering gains nothing.
  private let block: UnsafeMutableRawBufferPointer
  /// Offset of the block's first byte, the number of bytes in the block, and how many of them were returned.
  private var start: Int64
  private var held = 0
  private var given = 0

  init(
    _ source: any BlobSource, at offset: Int64, _ block: Int, always: Bool, _ cancel: Cancellation
  ) throws(BlobError) {
    self.source = source
    self.cancel = cancel
    start = offset
    reader = try source.open(at: offset, cancel)
    info = reader.info.buffered
    let preferred = reader.info.preferredRead
    self.block = .allocate(byteCount: preferred > 0 || always ? max(block, preferred) : 0, alignment: 16)
  }

  deinit { block.deallocate() }

  /// The offset of the byte that `read` returns next.
  public var offset: Int64 { start + Int64(given) }

  /// The buffered bytes that `read` returns next without calling the source. Often empty. Valid until the next call of
  /// `read` or `seek`, and as long as the reader lives.
  public var lent: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: block[given..<held]) }

  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    if given == held {
      if buffer.count >= block.count {
        start = offset
        (held, given) = (0, 0)
        let count = try reader.readChecked(into: buffer, at: start)
        start += Int64(count)
        return count
      }
      try fill()
    }
    return take(into: buffer)
  }

  /// Like `read`, but only from the block; returns 0 if it is empty.
  package func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, held - given)
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: lent.prefix(count)))
    given += count
    return count
  }

  /// Fills the block if it is empty. If it is still empty afterwards, the source has ended. Requires a block.
  package func fill() throws(BlobError) {
    if given < held { return }
    start = offset
    (held, given) = (0, 0)
    held = try reader.readChecked(into: block, at: start)
  }

  /// Continues at `offset` if that is inside the block; otherwise returns false and changes nothing.
  package func move(to offset: Int64) -> Bool {
    guard start...start + Int64(held) ~= offset else { return false }
    given = Int(offset - start)
    return true
  }

  /// Continues at `offset`. Inside the block this costs nothing; elsewhere the source is opened again, which throws
  /// `.changed` if it finds another version. After a throw the reader's position is unchanged.
  public func seek(to offset: Int64) throws(BlobError) {
    if move(to: offset) { return }
    let next = try source.open(at: offset, cancel)
    if next.info.validator != info.validator {
      throw BlobError(.changed, "the content changed before byte \(offset) could be opened")
    }
    reader = next
    start = offset
    (held, given) = (0, 0)
  }

  /// The source's reader is ahead by the bytes in the block.
  public func fileRegion() -> FileRegion? {
    guard var region = reader.fileRegion() else { return nil }
    let ahead = Int64(held - given)
    if region.start > 0 {
      region.start += ahead
    } else {
      region.offset -= ahead
      region.length = region.length.map { $0 + ahead }
    }
    return region
  }

  public func finish() throws(BlobError) { try reader.finish() }
}

extension BlobInfo {
  fileprivate var buffered: BlobInfo { BlobInfo(length: length, validator: validator, instanceLasts: instanceLasts) }
}
