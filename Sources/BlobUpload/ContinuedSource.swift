import Blobs
import Synchronization

/// A source whose next reader goes on where the reader before it has stopped, if that is the wanted byte.
///
/// An upload sends one part after another. Opening a source in its middle may be slow: PhotoKit, for example, delivers a
/// resource from its first byte on each time. So the reader of a part is kept for the next part, also while the server is
/// waited for. Only the latest reader is kept, until another offset is wanted or the upload ends.
final class ContinuedSource: BlobSource {
  let source: any BlobSource
  private let kept = Mutex<OpenedReader?>(nil)

  init(_ source: any BlobSource) { self.source = source }

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try reader(at: offset, cancel)
  }

  /// Reads up to `count` bytes from `offset` on, which the next reader returns again. Returns how many there are: fewer
  /// only if the source ends. They stay in memory until then. Blocks.
  func look(
    from offset: Int64, _ count: Int, _ validator: Validator?, _ cancel: Cancellation
  ) throws(BlobError) -> Int {
    let reader = try reader(at: offset, cancel)
    if let validator, validator != reader.info.validator { throw BlobError.changed(from: offset) }
    return try reader.look(count)
  }

  private func reader(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> ContinuedReader {
    try cancel.check("open at byte \(offset)")
    // A reader that stands at another byte is released before the source is opened once more.
    if let opened = kept.withLock({ $0.take() }), opened.offset == offset {
      return ContinuedReader(self, opened, cancel)
    }
    let stop = Cancellation()
    let reader = try stop.following(cancel) { () throws(BlobError) in try source.open(at: offset, stop) }
    return ContinuedReader(self, OpenedReader(reader, at: offset, stop), cancel)
  }

  fileprivate func keep(_ opened: OpenedReader) {
    // The reader that was kept before is released outside the lock, because that may call foreign code.
    let before = kept.withLock { kept in
      defer { kept = opened }
      return kept
    }
    _ = before
  }

  /// Takes back a reader that was kept; false: another reader goes on with it, or it was released.
  fileprivate func takeBack(_ opened: OpenedReader) -> Bool {
    kept.withLock { kept in
      if kept !== opened { return false }
      kept = nil
      return true
    }
  }
}

/// A reader of the source and the bytes that were read from it ahead. It is `Sendable` because one reader at a time has it:
/// it is handed on through the lock of `ContinuedSource`.
private final class OpenedReader: @unchecked Sendable {
  let reader: any BlobReader
  /// Stops the calls of `reader`, which outlives the request for which it was opened.
  let stop: Cancellation
  /// Offset of the next byte that is returned.
  var offset: Int64
  /// Bytes from `offset` on that were read ahead.
  var ahead: [UInt8] = []
  var isAtEnd = false
  /// After an error a reader must not be used.
  var isUsable = true

  init(_ reader: any BlobReader, at offset: Int64, _ stop: Cancellation) {
    self.reader = reader
    self.offset = offset
    self.stop = stop
  }
}

private final class ContinuedReader: ReadAheadAware {
  private let source: ContinuedSource
  private let opened: OpenedReader
  private let cancel: Cancellation
  /// `source` has the reader again.
  private var isKept = false

  init(_ source: ContinuedSource, _ opened: OpenedReader, _ cancel: Cancellation) {
    self.source = source
    self.opened = opened
    self.cancel = cancel
    info = opened.reader.info
  }

  deinit { keep() }

  let info: BlobInfo

  func willBeReadAhead() { (opened.reader as? any ReadAheadAware)?.willBeReadAhead() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    try takeBack()
    let count: Int
    if opened.ahead.isEmpty {
      count = try readOn(into: buffer)
    } else {
      count = min(buffer.count, opened.ahead.count)
      buffer.copyBytes(from: opened.ahead.prefix(count))
      opened.ahead.removeFirst(count)
    }
    opened.offset += Int64(count)
    return count
  }

  /// Reads ahead until `count` bytes are there or the source ends, and returns how many are there.
  func look(_ count: Int) throws(BlobError) -> Int {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, count), alignment: 16)
    defer { buffer.deallocate() }
    while opened.ahead.count < count {
      let missing = count - opened.ahead.count
      let read = try readOn(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(missing)))
      if read == 0 { break }
      opened.ahead += buffer.prefix(read)
    }
    return min(count, opened.ahead.count)
  }

  private func readOn(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if opened.isAtEnd { return 0 }
    let count = try calling { () throws(BlobError) in
      try opened.reader.readChecked(into: buffer, at: opened.offset + Int64(opened.ahead.count))
    }
    opened.isAtEnd = count == 0
    return count
  }

  /// What is sent from the file does not count as read, so the next part opens another reader.
  func fileRegion() -> FileRegion? { isKept || !opened.ahead.isEmpty ? nil : opened.reader.fileRegion() }

  /// The part is at its end. The next part may be opened before this reader is released.
  func finish() throws(BlobError) {
    try takeBack()
    try calling { () throws(BlobError) in try opened.reader.finish() }
    keep()
  }

  private func calling<Result>(_ body: () throws(BlobError) -> Result) throws(BlobError) -> Result {
    do {
      return try opened.stop.following(cancel, body)
    } catch {
      opened.isUsable = false
      throw error
    }
  }

  private func keep() {
    guard !isKept, opened.isUsable, !opened.stop.isCancelled else { return }
    isKept = true
    source.keep(opened)
  }

  private func takeBack() throws(BlobError) {
    guard isKept else { return }
    guard source.takeBack(opened) else {
      throw BlobError(.invalidated, "read at byte \(opened.offset): another reader has gone on from there")
    }
    isKept = false
  }
}

extension Cancellation {
  /// Runs `body`, and cancels this cancellation if `other` is cancelled meanwhile, but never later.
  fileprivate func following<Result>(
    _ other: Cancellation, _ body: () throws(BlobError) -> Result
  ) throws(BlobError) -> Result {
    let isOver = SharedFlag()
    defer { isOver.set() }
    return try other.whileWaiting(wakeUp: { [self] in isOver.unlessSet { cancel() } }, body)
  }
}

private final class SharedFlag: Sendable {
  private let isSet = Mutex(false)
  func set() { isSet.withLock { $0 = true } }
  func unlessSet(_ body: () -> Void) { isSet.withLock { if !$0 { body() } } }
}
