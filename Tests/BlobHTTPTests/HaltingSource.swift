import Blobs
import Platform
import Synchronization

/// A source whose first read returns some bytes, and whose second one waits until it is cancelled.
final class HaltingSource: BlobSource {
  /// The second read has begun.
  let isHalted = Atomic(false)

  var access: BlobAccess { .random }
  func info(_ cancel: Cancellation) -> BlobInfo { BlobInfo(length: 1 << 20) }
  func open(at offset: Int64, _ cancel: Cancellation) -> any BlobReader { Reader(self, cancel) }

  private final class Reader: BlobReader {
    private let source: HaltingSource
    private let cancel: Cancellation
    private var hasRead = false

    init(_ source: HaltingSource, _ cancel: Cancellation) { (self.source, self.cancel) = (source, cancel) }

    var info: BlobInfo { BlobInfo(length: 1 << 20) }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      if !hasRead {
        hasRead = true
        let some = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(1000))
        some.initializeMemory(as: UInt8.self, repeating: 7)
        return some.count
      }
      source.isHalted.store(true, ordering: .relaxed)
      while !cancel.isCancelled { usleep(1000) }
      throw BlobError(.cancelled, "read: cancelled")
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {}
  }
}
