import Blobs
import Platform

/// A source over an open file descriptor, read with `pread` and not reopened.
struct OriginalFile: BlobSource {
  let descriptor: Int32
  var access: BlobAccess { .random }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    var status = stat()
    if fstat(descriptor, &status) != 0 { throw systemError(errno, "look at the original") }
    return BlobInfo(length: Int64(status.st_size))
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    Reader(descriptor, offset, try info(cancel))
  }

  private final class Reader: BlobReader {
    let info: BlobInfo
    private let descriptor: Int32
    private var offset: Int64

    init(_ descriptor: Int32, _ offset: Int64, _ info: BlobInfo) {
      (self.descriptor, self.offset, self.info) = (descriptor, offset, info)
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
      if count < 0 { throw systemError(errno, "read the original") }
      offset += Int64(count)
      return count
    }

    func fileRegion() -> FileRegion? { nil }
    func finish() throws(BlobError) {}
  }
}
