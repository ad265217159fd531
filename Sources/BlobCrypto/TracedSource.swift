import Blobs
import Synchronization

/// A source that keeps a checksum of what is read of it, from one byte on, without a gap.
///
/// What is read again is not fed again: openings at or before the byte reached go on from there. A reader that would
/// leave a gap feeds nothing. All readers must be of one version: a `BlobSlice` with a validator sees to it.
package struct TracedSource: BlobSource {
  private let source: any BlobSource
  private let trace: Trace

  /// `record` hears, before the bytes are given out, up to which byte there is a checksum and which it is. It is called
  /// on the reader's thread.
  package init(
    _ source: any BlobSource, from start: Int64, key: [UInt8], _ record: @escaping @Sendable (Int64, [UInt8]) -> Void
  ) {
    self.source = source
    trace = Trace(from: start, key: key, record)
  }

  package var access: BlobAccess { source.access }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    TracedReader(try source.open(at: offset, cancel), trace, at: offset)
  }
}

private final class Trace: Sendable {
  private struct State {
    let checksum: KeyedChecksum
    var end: Int64
  }
  private let state: Monitor<State>
  private let record: @Sendable (Int64, [UInt8]) -> Void

  init(from start: Int64, key: [UInt8], _ record: @escaping @Sendable (Int64, [UInt8]) -> Void) {
    state = Monitor(State(checksum: KeyedChecksum(key: key), end: start))
    self.record = record
  }

  /// Takes what is new in `bytes`, which begin at `offset`. Under the lock: an abandoned reader may still be running.
  func feed(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
    state.update { state in
      let known = state.end - offset
      guard 0..<Int64(bytes.count) ~= known else { return }
      state.checksum.update(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(Int(known))))
      state.end = offset + Int64(bytes.count)
      record(state.end, state.checksum.value())
    }
  }
}

private final class TracedReader: BlobReader {
  private let reader: any BlobReader
  private let trace: Trace
  private var offset: Int64

  init(_ reader: any BlobReader, _ trace: Trace, at offset: Int64) {
    self.reader = reader
    self.trace = trace
    self.offset = offset
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    let count = try reader.read(into: buffer)
    trace.feed(UnsafeRawBufferPointer(rebasing: buffer.prefix(count)), at: offset)
    offset += Int64(count)
    return count
  }

  // What is sent from a region is not traced.
  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try reader.finish() }
}
