/// A source that is read in blocks, however small its users' reads, where its `preferredRead` says that this pays.
///
/// A reader that is dropped takes what it had read ahead with it: of a sequential source those bytes are gone.
public struct BufferedSource: BlobSource {
  private let source: any BlobSource
  private let block: Int

  /// Reads at least `block` bytes at a time, or `preferredRead` where that is more; nothing is kept where that is 0.
  public init(_ source: any BlobSource, block: Int = 128 << 10) {
    precondition(block > 0)
    self.source = source
    self.block = block
  }

  public var access: BlobAccess { source.access }

  /// As the source's, but for `preferredRead`, which is 0: small reads cost nothing any more.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel).buffered }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try openBuffered(at: offset, cancel)
  }

  /// As `open`, for callers that want to seek or to look at the block.
  public func openBuffered(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> BufferedReader {
    try openBuffered(at: offset, always: false, cancel)
  }

  /// `always`: in blocks, whatever the source prefers. For readers that are filled ahead of their use.
  package func openBuffered(
    at offset: Int64, always: Bool, _ cancel: Cancellation
  ) throws(BlobError) -> BufferedReader {
    try BufferedReader(source, at: offset, block, always: always, cancel)
  }
}

/// A reader with a block of bytes at hand.
public final class BufferedReader: BlobReader {
  public let info: BlobInfo
  private let source: any BlobSource
  private let cancel: Cancellation
  private var reader: any BlobReader
  /// Empty where buffering gains nothing.
  private let block: UnsafeMutableRawBufferPointer
  /// Offset of the block's first byte, how many it holds, and how many of them were read.
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

  /// The offset of the byte that `read` gives next.
  public var offset: Int64 { start + Int64(given) }

  /// Bytes that are at hand: those that `read` gives next, without asking the source. Often none.
  /// Valid until the next call of `read` or `seek`, and as long as the reader lives.
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

  /// As `read`, of what is at hand: 0 when that is nothing.
  package func take(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, held - given)
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: lent.prefix(count)))
    given += count
    return count
  }

  /// Sees to it that there are bytes at hand; if there are none then, it is the end. Only where there is a block.
  package func fill() throws(BlobError) {
    if given < held { return }
    start = offset
    (held, given) = (0, 0)
    held = try reader.readChecked(into: block, at: start)
  }

  /// Goes on at `offset` if that is inside the block; else answers false, and nothing has changed.
  package func move(to offset: Int64) -> Bool {
    guard start...start + Int64(held) ~= offset else { return false }
    given = Int(offset - start)
    return true
  }

  /// Goes on at `offset`. Inside the block this costs nothing; elsewhere the source is opened again, and `.changed` is
  /// thrown if that finds another version. After a throw the reader is where it was.
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

  /// The source's reader is ahead by what is at hand.
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
