import BlobTesting
import Blobs

/// A source of which reading blocks at a byte and does not notice that it was cancelled, as that of a file on a disk that
/// does not answer.
final class HangingSource: BlobSource {
  private let source: PatternSource
  private let end: Int64
  private let state = Monitor((isFree: false, hanging: 0))

  init(_ source: PatternSource, at end: Int64) {
    self.source = source
    self.end = end
  }

  /// Threads that hang, or have hung.
  var hanging: Int { state.update(waking: .none) { $0.hanging } }
  /// The disk answers.
  func free() { state.update { $0.isFree = true } }

  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(try source.open(at: offset, cancel), self, offset)
  }

  private func hang() {
    state.update(waking: .none) { $0.hanging += 1 }
    state.wait { $0.isFree ? () : nil }
  }

  private final class Reader: BlobReader {
    let reader: any BlobReader
    let source: HangingSource
    var offset: Int64

    init(_ reader: any BlobReader, _ source: HangingSource, _ offset: Int64) {
      (self.reader, self.source, self.offset) = (reader, source, offset)
    }

    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      if offset == source.end { source.hang() }
      let most = offset < source.end ? Int(min(Int64(buffer.count), source.end - offset)) : buffer.count
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(most)))
      offset += Int64(count)
      return count
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}
