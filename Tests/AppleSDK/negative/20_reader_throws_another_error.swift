// expect: does not conform to protocol 'BlobReader'
import Blobs
struct Failure: Error {}
final class Reader: BlobReader {
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int { throw Failure() }
}
