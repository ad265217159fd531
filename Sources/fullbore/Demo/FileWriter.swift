import Blobs
import Platform

/// A new file, written from its start through a buffer. Belongs to one thread.
final class FileWriter {
  private let path: BytePath
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private let limit = 256 << 10

  /// Throws when there is a file of that name already.
  init(_ path: BytePath) throws(DemoError) {
    self.path = path
    descriptor = path.withCString { create($0) }
    if descriptor < 0 { throw DemoError("create \(path): \(String(cString: strerror(errno)))") }
    buffer.reserveCapacity(limit + (66 << 10))
  }

  deinit { close(descriptor) }

  func write(_ bytes: [UInt8]) throws(DemoError) {
    buffer.append(contentsOf: bytes)
    if buffer.count >= limit { try flush() }
  }

  /// Writes in the middle of what is not there yet: what lies before it takes no room on the disk.
  func write(_ bytes: [UInt8], at offset: Int64) throws(DemoError) {
    let count = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
    if count != bytes.count { throw failure("write", errno) }
  }

  func setLength(_ length: Int64) throws(DemoError) {
    if ftruncate(descriptor, off_t(length)) != 0 { throw failure("set the length of", errno) }
  }

  func flush() throws(DemoError) {
    var start = 0
    while start < buffer.count {
      let count = buffer.withUnsafeBytes { Platform.write(descriptor, $0.baseAddress! + start, $0.count - start) }
      if count < 0 && errno == EINTR { continue }
      if count < 0 { throw failure("write", errno) }
      start += count
    }
    buffer.removeAll(keepingCapacity: true)
  }

  private func failure(_ operation: String, _ number: Int32) -> DemoError {
    DemoError("\(operation) \(path): \(String(cString: strerror(number)))")
  }
}

private func create(_ path: UnsafePointer<CChar>) -> Int32 {
  open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
}
