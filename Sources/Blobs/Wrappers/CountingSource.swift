import Synchronization

/// A source that counts the bytes read through it, by all its readers together, and how often given ones occur.
public struct CountingSource: BlobSource {
  private let source: any BlobSource
  private let pattern: BytePattern?
  private let counter = Counter()

  public init(_ source: any BlobSource) {
    self.source = source
    pattern = nil
  }

  /// Counts also how often `bytes`, at least one, occur one after the other: `[10]` counts lines.
  public init(_ source: any BlobSource, occurrencesOf bytes: [UInt8]) {
    self.source = source
    pattern = BytePattern(bytes)
  }

  /// Bytes read so far; bytes read twice count twice. Any thread may ask.
  public var count: Int64 { counter.bytes.load(ordering: .relaxed) }

  /// How often the given bytes were read, by one reader and without overlap, however its reads cut them; one that
  /// starts before the byte where the reader was opened is not seen. 0 when none were given. Any thread may ask.
  public var occurrences: Int64 { counter.occurrences.load(ordering: .relaxed) }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    CountingReader(try source.open(at: offset, cancel), counter, pattern)
  }

  fileprivate final class Counter: Sendable {
    let bytes = Atomic<Int64>(0)
    let occurrences = Atomic<Int64>(0)
  }
}

private final class CountingReader: BlobReader {
  private let reader: any BlobReader
  private let counter: CountingSource.Counter
  private var pattern: BytePattern?

  init(_ reader: any BlobReader, _ counter: CountingSource.Counter, _ pattern: BytePattern?) {
    self.reader = reader
    self.counter = counter
    self.pattern = pattern
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.readChecked(into: buffer)
    counter.bytes.add(Int64(count), ordering: .relaxed)
    if let found = pattern?.count(in: UnsafeRawBufferPointer(rebasing: buffer.prefix(count))), found > 0 {
      counter.occurrences.add(Int64(found), ordering: .relaxed)
    }
    return count
  }

  // What is sent from a region is not seen here.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
