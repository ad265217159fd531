import Synchronization

/// A source that counts the bytes read through it, by all its readers together.
public struct CountingSource: BlobSource {
  private let source: any BlobSource
  private let counter = Counter()

  public init(_ source: any BlobSource) { self.source = source }

  /// Bytes read so far; bytes read twice count twice. Any thread may ask.
  public var count: Int64 { counter.bytes.load(ordering: .relaxed) }

  public var access: BlobAccess { source.access }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    CountingReader(try source.open(at: offset, cancel), counter)
  }

  fileprivate final class Counter: Sendable {
    let bytes = Atomic<Int64>(0)
  }
}

private final class CountingReader: BlobReader {
  private let reader: any BlobReader
  private let counter: CountingSource.Counter

  init(_ reader: any BlobReader, _ counter: CountingSource.Counter) {
    self.reader = reader
    self.counter = counter
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.read(into: buffer)
    counter.bytes.add(Int64(count), ordering: .relaxed)
    return count
  }

  // What is sent from a region is not seen here.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
