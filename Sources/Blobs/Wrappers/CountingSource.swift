import Synchronization

/// A source that counts the bytes read by all its readers together, and how often a given pattern occurs.
public struct CountingSource: BlobSource {
  private let source: any BlobSource
  private let pattern: BytePattern?
  private let counter = Counter()

  /// Counts the bytes that are read from a source. All copies of this value share one count.
  public init(_ source: any BlobSource) {
    self.source = source
    pattern = nil
  }

  /// Also counts the occurrences of `bytes`, at least one byte: `[10]` counts lines.
  public init(_ source: any BlobSource, occurrencesOf bytes: [UInt8]) {
    self.source = source
    pattern = BytePattern(bytes)
  }

  /// Bytes read so far; bytes that are read twice count twice. Any thread may ask.
  public var count: Int64 { counter.bytes.load(ordering: .relaxed) }

  /// The number of occurrences of the pattern in what single readers have read, without overlap and independent of read
  /// boundaries. An occurrence that starts before the offset where its reader was opened is not counted. 0 without a
  /// pattern. Any thread may ask.
  public var occurrences: Int64 { counter.occurrences.load(ordering: .relaxed) }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    var pattern = pattern
    return ObservedReader(try source.open(at: offset, cancel)) { [counter] bytes, _ in
      counter.bytes.add(Int64(bytes.count), ordering: .relaxed)
      if let found = pattern?.count(in: bytes), found > 0 {
        counter.occurrences.add(Int64(found), ordering: .relaxed)
      }
    }
  }

  private final class Counter: Sendable {
    let bytes = Atomic<Int64>(0)
    let occurrences = Atomic<Int64>(0)
  }
}
