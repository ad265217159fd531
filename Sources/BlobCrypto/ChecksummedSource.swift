import Blobs
import Synchronization

/// A source that keeps a checksum of the bytes read from it, starting at a given byte, without gaps.
///
/// Bytes that are read again are not added again: readers opened at or before the current end continue from there. A
/// reader that would leave a gap adds nothing. All readers must have the same version; a `BlobSlice` with a validator
/// ensures that.
package struct ChecksummedSource: BlobSource {
  private let source: any BlobSource
  private let trace: Trace

  /// `record` is called before the bytes are returned, on the reader's thread, with the offset up to which the checksum
  /// extends and the checksum.
  package init(
    _ source: any BlobSource, from start: Int64, key: [UInt8], _ record: @escaping @Sendable (Int64, [UInt8]) -> Void
  ) {
    self.source = source
    trace = Trace(from: start, key: key, record)
  }

  package var access: BlobAccess { source.access }

  package func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  package func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    ObservedReader(try source.open(at: offset, cancel), at: offset) { [trace] in trace.feed($0, at: $1) }
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

  /// Adds the new bytes of `bytes`, which begin at `offset`. The lock is needed because an abandoned reader may still
  /// run.
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
