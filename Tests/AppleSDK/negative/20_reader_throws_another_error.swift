// expect: does not conform to protocol 'BlobReader'
import Blobs
struct Failure: Error {}
final class Reader: BlobReader {
  var info: BlobInfo { BlobInfo(length: nil) }
  func fileRegion() -> FileRegion? { nil }
  func finish() throws(BlobError) {}
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int { throw Failure() }
}
