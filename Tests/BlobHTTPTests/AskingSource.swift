import Blobs
import Synchronization

/// A source that may ask to be read ahead. It checks that only one thread uses it at a time, with buffers of any size.
struct AskingSource: BlobSource {
  let source: any BlobSource
  let isAsking: Bool
  /// The maximum number of bytes of one read.
  var most = Int.max
  /// Called before each read, on the thread that reads.
  var before: @Sendable () -> Void = {}
  let use = Use()

  final class Use: Sendable {
    let opened = Tally()
    let closed = Tally()
    let reads = Tally()
    /// The number of reads that began on another thread before the previous one had returned.
    let collisions = Tally()
  }

  var access: BlobAccess { source.access }

  init(_ source: any BlobSource, isAsking: Bool) {
    self.source = source
    self.isAsking = isAsking
  }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { asking(try source.info(cancel)) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(self, try source.open(at: offset, cancel))
  }

  private func asking(_ info: BlobInfo) -> BlobInfo {
    var info = info
    if isAsking { info.readAhead = 256 << 10 }
    return info
  }

  private final class Reader: BlobReader {
    private let source: AskingSource
    private let reader: any BlobReader
    private let isBusy = Atomic(false)

    init(_ source: AskingSource, _ reader: any BlobReader) {
      self.source = source
      self.reader = reader
      source.use.opened.add(1)
    }

    deinit { source.use.closed.add(1) }

    var info: BlobInfo { source.asking(reader.info) }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      if isBusy.exchange(true, ordering: .acquiringAndReleasing) { source.use.collisions.add(1) }
      defer { isBusy.store(false, ordering: .releasing) }
      source.use.reads.add(1)
      source.before()
      return try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(source.most)))
    }

    func fileRegion() -> FileRegion? { nil }

    func finish() throws(BlobError) {
      if isBusy.load(ordering: .acquiring) { source.use.collisions.add(1) }
      try reader.finish()
    }
  }
}
