import Blobs
import Synchronization

/// Bytes of a form that are in memory: boundaries, part headers and small parts.
struct FormMemorySource: BlobSource {
  /// Records whether the last read was of bytes in memory.
  final class Mark: Sendable {
    let isHead = Atomic(false)
  }
  private let data: DataSource
  private let mark: Mark

  /// The text of a part header serves as its version. A form has a header for each part, and computing digests of all
  /// of them would be most of the work for small files.
  init(_ bytes: [UInt8], _ mark: Mark) {
    let version = String(validating: bytes, as: UTF8.self)
    self.init(DataSource(bytes, validator: version.map { Validator(version: $0) }), mark)
  }

  init(_ data: DataSource, _ mark: Mark) {
    self.data = data
    self.mark = mark
  }

  var access: BlobAccess { data.access }
  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try data.info(cancel) }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(try data.open(at: offset, cancel), mark)
  }

  private final class Reader: BlobReader {
    private let reader: any BlobReader
    private let mark: Mark
    init(_ reader: any BlobReader, _ mark: Mark) {
      self.reader = reader
      self.mark = mark
    }
    var info: BlobInfo { reader.info }
    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      mark.isHead.store(true, ordering: .relaxed)
      return try reader.read(into: buffer)
    }
    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) { try reader.finish() }
  }
}

/// Fills the buffer across pieces in memory and the content after them, so that part headers are not sent as small
/// packets.
final class FormReader: BlobReader {
  private let reader: any BlobReader
  private let mark: FormMemorySource.Mark
  /// An error that occurred after bytes were already read; the next call throws it.
  private var failure: BlobError?

  init(_ reader: any BlobReader, _ mark: FormMemorySource.Mark) {
    self.reader = reader
    self.mark = mark
  }

  var info: BlobInfo { reader.info }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if let failure { throw failure }
    var count = 0
    repeat {
      mark.isHead.store(false, ordering: .relaxed)
      do throws(BlobError) {
        let more = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[count...]))
        if more == 0 { break }
        count += more
      } catch {
        if count == 0 { throw error }
        failure = error
        break
      }
    } while mark.isHead.load(ordering: .relaxed) && count < buffer.count
    return count
  }

  func fileRegion() -> FileRegion? { failure == nil ? reader.fileRegion() : nil }

  func finish() throws(BlobError) {
    if let failure { throw failure }
    try reader.finish()
  }
}
