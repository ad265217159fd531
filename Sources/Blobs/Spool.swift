/// Keeps what it reads from a sequential source, so that it can be read again: a part that did not arrive, say.
///
/// It can be opened at any byte that is still held: those read since the last `release`, as far as there is room for
/// them. Without a folder that is `memory`, and the oldest bytes make way for new ones: reading goes on, going back that
/// far does not. In a folder, what does not fit into memory goes to a temporary file without a name, which is gone with
/// the spool and its readers, however they end, a kill included.
public struct Spool: BlobSource {
  private let source: any BlobSource
  private let store: SpoolStore
  /// For as long `open` waits for another reader to end: some transports let go of one after they have answered.
  package var patience: Duration = .zero
  public var access: BlobAccess { .sequential }

  /// `memory` is in bytes, at least 1. Nothing is written to disk unless a folder for it is named here.
  public init(_ source: any BlobSource, memory: Int = 8 << 20, spillingInto folder: BytePath? = nil) {
    precondition(memory > 0)
    self.source = source
    store = SpoolStore(memory: memory, folder: folder)
  }

  /// Bytes that are held in memory at the most.
  public var memory: Int { store.capacity }

  /// Bytes that can be read again, and the one that comes next from the source. Any thread may ask.
  public var held: ClosedRange<Int64> { store.held }

  /// Forgets the bytes before `offset`, because they have arrived: they cannot be opened any more. Bytes that were not
  /// read yet stay to come. Any thread may call, also while a reader is at work.
  public func release(upTo offset: Int64) { store.release(upTo: offset) }

  /// Begins anew with a source that can be read from its start once more; throws what it throws where it cannot.
  package func rewind(_ cancel: Cancellation) throws(BlobError) {
    try store.awaitReader(atMost: patience, cancel)
    _ = try source.open(at: 0, cancel)
    try store.rewind()
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  /// Throws `.outOfRange` for bytes that are not held, `.unsupported` while another reader is at work, `.changed` where
  /// the source is not the version of the bytes that are held, and what the folder throws if there is none.
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
  /// Where all that is held was read: what goes on.
  private var reader: (any BlobReader)?

  init(_ source: any BlobSource, _ info: BlobInfo, _ store: SpoolStore, at offset: Int64, _ cancel: Cancellation) {
    self.source = source
    self.info = info
    self.store = store
    self.offset = offset
    self.cancel = cancel
  }

  deinit {
    // The source's reader first: the next one must find the source free.
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

  // What is held is not in the source's file.
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
