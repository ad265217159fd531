import BlobHTTP
import Blobs

/// Threads that the tests of HTTP sources may block.
let rangeThreads = BlockingPool("range-tests", threads: 16)

/// Calls of HTTP sources on threads that may block.
protocol RangeReading {}

extension RangeReading {
  func info(_ source: HTTPRangeSource) async throws -> BlobInfo {
    try await rangeThreads.run { () throws(BlobError) in try source.info(Cancellation()) }
  }

  func read(_ slice: BlobSlice) async throws -> [UInt8] {
    try await rangeThreads.run { () throws in
      let reader = try slice.open(Cancellation())
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
      defer { buffer.deallocate() }
      var bytes: [UInt8] = []
      while case let count = try reader.read(into: buffer), count > 0 { bytes += buffer.prefix(count) }
      return bytes
    }
  }
}
