import BlobStreams
import Blobs
import Foundation

/// Everything a reader still gives.
func readAll(_ reader: any BlobReader) throws(BlobError) -> [UInt8] {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
  defer { buffer.deallocate() }
  var bytes: [UInt8] = []
  while true {
    let count = try reader.read(into: buffer)
    if count == 0 { return bytes }
    bytes.append(contentsOf: buffer.prefix(count))
  }
}

/// What `work` throws; nil when it succeeds.
func failure<Result>(_ work: () throws(BlobError) -> Result) -> BlobError? {
  do throws(BlobError) {
    _ = try work()
    return nil
  } catch {
    return error
  }
}
