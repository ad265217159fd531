/// Something that has bytes and can be opened repeatedly at an offset.
///
/// A source is a value or an immutable object that any thread may use. Its methods block: call them on a thread that
/// may wait (a transport's worker, a `BlockingPool`), never on a cooperative thread.
public protocol BlobSource: Sendable {
  /// Whether any offset can be opened at any time, or only what the source still has.
  var access: BlobAccess { get }

  /// Returns what is known without reading: length, version, preferred block size.
  /// Throws `.notFound`, `.permission`, `.io`, or `.cancelled`.
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo

  /// Opens a reader whose first byte is the one at `offset`, counted from 0. A reader opened at the end returns no
  /// bytes; an offset past the end throws `.outOfRange`. `cancel` also interrupts an open that blocks.
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader

  /// Called when the source was read and is only kept in case it must be read again: it should close what it holds open
  /// between two readers, and can still be opened. On any thread; it does not block. The default does nothing.
  func closeUntilNeeded()
}

extension BlobSource {
  public func closeUntilNeeded() {}
}

/// How a source may be opened.
public enum BlobAccess: Sendable {
  /// Any offset may be opened, by any number of readers at once.
  case random
  /// One reader at a time, from the byte where the last reader ended or from an earlier byte that is still buffered.
  case sequential
}

/// One pass over a source's bytes, from the offset it was opened at to the end.
///
/// A reader is used by one thread only. It frees its resources in `deinit`.
public protocol BlobReader: AnyObject {
  /// Properties of the version that was opened, as of the moment of opening.
  var info: BlobInfo { get }

  /// Reads at least one byte into `buffer` and returns the count; 0 only at the end. `buffer` is never empty. This call
  /// blocks. After a throw the reader is unusable: open another one.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int

  /// The file region that contains bytes still to be read, for sending a body without copying; nil if there is none.
  /// Bytes sent from this region do not count as read. The sender calls `finish()` afterwards and opens another reader
  /// for what follows.
  func fileRegion() -> FileRegion?

  /// Checks, after the last byte that is wanted, whether the content is still the version that was opened; throws
  /// `.changed` if not. Also called in the middle of the source, at the end of a part. A source that cannot check there
  /// returns normally.
  func finish() throws(BlobError)
}

/// Bytes of an open file, for `sendfile` and the like. The descriptor belongs to the reader and is valid as long as the
/// reader lives.
public struct FileRegion: Sendable {
  /// The descriptor of the open file. The caller must neither close it nor move its file offset.
  public var descriptor: Int32
  /// Offset of the first byte in the file.
  public var offset: Int64
  /// The number of bytes that the reader returns before the byte at `offset`.
  public var start: Int64
  /// Length in bytes; nil: everything from there to the reader's end.
  public var length: Int64?

  /// Creates a region of an open file. All numbers are in bytes; `length` nil: up to the reader's end.
  public init(descriptor: Int32, offset: Int64, start: Int64 = 0, length: Int64? = nil) {
    self.descriptor = descriptor
    self.offset = offset
    self.start = start
    self.length = length
  }
}
