/// Buffers what it reads from a sequential source, so that bytes can be read again, for example for a part that did not
/// arrive.
///
/// It can be opened at any byte that is still buffered: those read since the last `release`, as far as there is room.
/// Without a folder, the room is `memory`, and new bytes replace the oldest: reading continues, but the replaced bytes
/// cannot be read again. With a folder, bytes that do not fit into memory go to an unnamed temporary file, which
/// disappears with the spool and its readers however they end, even if the process is killed.
public struct Spool: BlobSource {
  private let source: any BlobSource
  private let store: SpoolStore
  /// How long `open` waits for another reader to end: some transports release a reader only after they have reported
  /// the response.
  package var patience: Duration = .zero
  public var access: BlobAccess { .sequential }

  /// `memory` is in bytes, at least 1. Nothing is written to disk unless `folder` is given.
  public init(_ source: any BlobSource, memory: Int = 8 << 20, spillingInto folder: BytePath? = nil) {
    precondition(memory > 0)
    self.source = source
    store = SpoolStore(memory: memory, folder: folder)
  }

  /// The maximum number of bytes in memory.
  public var memory: Int { store.capacity }

  /// The range of bytes that can be read again; its upper bound is the next byte from the source. Any thread may ask.
  public var held: ClosedRange<Int64> { store.held }

  /// Discards the bytes before `offset`, because they have arrived: they cannot be opened any more. Bytes that were not
  /// read yet are not affected. Any thread may call this, also while a reader is active.
  public func release(upTo offset: Int64) { store.release(upTo: offset) }

  /// Restarts with a source that can be opened at its start again; throws the source's error if it cannot.
  package func rewind(_ cancel: Cancellation) throws(BlobError) {
    try store.awaitReader(atMost: patience, cancel)
    _ = try source.open(at: 0, cancel)
    try store.rewind()
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// Throws `.outOfRange` for bytes that are no longer buffered, `.unsupported` while another reader is active,
  /// `.changed` if the source's version differs from that of the buffered bytes, and the system's error if the folder
  /// does not exist.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let info = try source.info(cancel)
    if patience > .zero { try store.awaitReader(atMost: patience, cancel) }
    try store.open(at: offset, info)
    return SpoolReader(source, info, store, at: offset, cancel)
  }
}

private final class SpoolReader: BlobReader {
  let info: BlobInfo
  private let source: any BlobSource
  private let store: SpoolStore
  private let cancel: Cancellation
  private var offset: Int64
  /// The source's reader, opened once all buffered bytes have been read.
  private var reader: (any BlobReader)?

  init(_ source: any BlobSource, _ info: BlobInfo, _ store: SpoolStore, at offset: Int64, _ cancel: Cancellation) {
    self.source = source
    self.info = info
    self.store = store
    self.offset = offset
    self.cancel = cancel
  }

  deinit {
    // The source's reader must be released first: the next reader must find the source free.
    reader = nil
    store.closed()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    try cancel.check("read a spool")
    var count = try store.copy(from: offset, into: buffer)
    if count == 0 {
      let room = try store.makeRoom(buffer.count)
      let space = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(room))
      count = try openSource().readChecked(into: space, at: offset)
      store.append(UnsafeRawBufferPointer(rebasing: space.prefix(count)))
    }
    offset += Int64(count)
    return count
  }

  // Buffered bytes are not in the source's file.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) {
    if offset == store.held.upperBound { try openSource().finish() }
  }

  private func openSource() throws(BlobError) -> any BlobReader {
    if let reader { return reader }
    let opened = try source.open(at: offset, cancel)
    if opened.info.validator != info.validator {
      throw BlobError(.changed, "the content changed before byte \(offset) could be opened")
    }
    reader = opened
    return opened
  }
}
