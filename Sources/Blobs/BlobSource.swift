/// Anything that has bytes: it can be opened, again and again, at an offset.
///
/// A source is a value or an immutable object that any thread may use. Its methods block; call them on a thread
/// that may wait (a transport's worker, a `BlockingPool`), never on a cooperative one.
public protocol BlobSource: Sendable {
  /// Whether any offset can be opened at any time, or only what the source still holds.
  var access: BlobAccess { get }

  /// What is known without reading: length, version, preferred block.
  /// Throws `.notFound`, `.permission`, `.io`, or `.cancelled`.
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo

  /// A reader whose first byte is the one at `offset`, which counts from 0. Opening at the end gives a reader that
  /// reads nothing; past the end throws `.outOfRange`. `cancel` also ends an open that blocks.
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader
}

/// How a source may be opened.
public enum BlobAccess: Sendable {
  /// Any offset, any number of readers at once.
  case random
  /// One reader at a time, from the byte where the last one ended, or an earlier one that is still held.
  case sequential
}

/// One pass over a source's bytes, from the offset it was opened at to the end.
///
/// A reader belongs to the one thread that uses it and frees what it holds in `deinit`.
public protocol BlobReader: AnyObject {
  /// The version that was opened, as seen at the moment of opening.
  var info: BlobInfo { get }

  /// Fills `buffer` with at least one byte and returns how many; 0 only at the end. `buffer` is never empty.
  /// Blocks. After a throw the reader is useless: open another one.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int

  /// Where a file has bytes of what is still to be read, for a body that is sent without being copied; nil where there
  /// is none. What is sent from there is not counted as read: whoever sends it asks `finish()`, and opens another reader
  /// for what follows.
  func fileRegion() -> FileRegion?

  /// Asks, after the last byte that is wanted, whether the content is still the version that was opened: `.changed`
  /// if not. Also called in the middle, where a part ends; a source that cannot tell there says nothing.
  func finish() throws(BlobError)
}

/// Bytes of an open file, for `sendfile` and the like. The descriptor belongs to the reader and lives as long as it.
public struct FileRegion: Sendable {
  public var descriptor: Int32
  /// Of the first byte, in the file.
  public var offset: Int64
  /// How many bytes the reader gives before it comes to that one.
  public var start: Int64
  /// Bytes; nil: all that the reader has from there on.
  public var length: Int64?

  public init(descriptor: Int32, offset: Int64, start: Int64 = 0, length: Int64? = nil) {
    self.descriptor = descriptor
    self.offset = offset
    self.start = start
    self.length = length
  }
}
