import Blobs
import Synchronization

/// A source that remembers whether it could not be read, so that damaged content is told from a server that fails.
final class WatchedSource: BlobSource {
  private let source: any BlobSource
  private let failed = Atomic(false)

  init(_ source: any BlobSource) { self.source = source }

  var hasFailed: Bool { failed.load(ordering: .relaxed) }

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try noting { () throws(BlobError) in try source.info(cancel) }
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    WatchedReader(try noting { () throws(BlobError) in try source.open(at: offset, cancel) }, self)
  }

  fileprivate func noting<Value>(_ body: () throws(BlobError) -> Value) throws(BlobError) -> Value {
    do throws(BlobError) { return try body() } catch {
      failed.store(true, ordering: .relaxed)
      throw error
    }
  }
}

private final class WatchedReader: BlobReader {
  private let reader: any BlobReader
  private let source: WatchedSource

  init(_ reader: any BlobReader, _ source: WatchedSource) { (self.reader, self.source) = (reader, source) }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    try source.noting { () throws(BlobError) in try reader.readChecked(into: buffer) }
  }

  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) { try source.noting { () throws(BlobError) in try reader.finish() } }
}
