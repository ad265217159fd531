import BlobTesting
import Blobs
import Synchronization

/// All bytes that a reader still returns.
func readAll(_ reader: any BlobReader, upTo size: Int = 4096) throws(BlobError) -> [UInt8] {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
  defer { buffer.deallocate() }
  var bytes: [UInt8] = []
  while true {
    let count = try reader.read(into: buffer)
    if count == 0 { return bytes }
    bytes.append(contentsOf: buffer.prefix(count))
  }
}

/// The next `count` bytes, or fewer at the end.
func readNext(_ reader: any BlobReader, _ count: Int) throws(BlobError) -> [UInt8] {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
  defer { buffer.deallocate() }
  var given = 0
  while given < count {
    let more = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[given...]))
    if more == 0 { break }
    given += more
  }
  return Array(buffer.prefix(given))
}

extension BlobSource {
  func readAll(at offset: Int64 = 0, upTo size: Int = 4096) throws(BlobError) -> [UInt8] {
    try BlobsTests.readAll(try open(at: offset, Cancellation()), upTo: size)
  }

  func info() throws(BlobError) -> BlobInfo { try info(Cancellation()) }
}

extension BlobSlice {
  func readAll(upTo size: Int = 4096) throws(BlobError) -> [UInt8] {
    try BlobsTests.readAll(try open(Cancellation()), upTo: size)
  }
}

final class Counter: Sendable {
  private let value = Atomic(0)
  var count: Int { value.load(ordering: .relaxed) }
  func add(_ number: Int = 1) { value.add(number, ordering: .relaxed) }
}

/// For blocking work of asynchronous tests.
let threads = BlockingPool("tests", threads: 32)

/// Waits until `condition` is true; throws after thirty seconds.
func until(_ condition: () -> Bool) async throws {
  let deadline = ContinuousClock.now + .seconds(30)
  while !condition() {
    if ContinuousClock.now > deadline { throw CheckFailure("it never came about") }
    try await Task.sleep(for: .milliseconds(1))
  }
}
