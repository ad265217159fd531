import BlobCrypto
import Blobs
import Platform
import Synchronization

/// Records how far one process has sent each upload in progress: a small file beside the journal.
///
/// A checksum must be stored before its bytes leave. Otherwise a SIGKILL in between would leave the server with bytes
/// that cannot be verified. A commit for each block costs too much; overwriting 128 bytes in the page cache takes a
/// microsecond and also survives the process. A process that takes over a dead owner's claims moves its ranges into the
/// journal.
final class SentLog: Sendable {
  // A record never spans two pages, so a kill cannot tear it. A record torn by a power failure does not match the
  // source, which is harmless.
  private static let recordCount = 128

  private struct State {
    var path: BytePath?
    var descriptor: Int32 = -1
    var slots: [Int64: Int64] = [:]
    var free: [Int64] = []
  }
  private let state = Mutex(State())
  private let journal: BytePath

  init(beside journal: BytePath) { self.journal = journal }

  deinit { remove() }

  /// From now on the file belongs to `owner`. An existing file with this name is from the owner of a deleted journal.
  func start(as owner: Int64) {
    let path = path(of: owner)
    _ = path.withCString { unlink($0) }
    state.withLock { $0.path = path }
  }

  /// Starts a range of an upload, in place of the last one. The closure records the sent bytes; it is fast.
  func begin(_ upload: Int64, from start: Int64, key: [UInt8]) -> @Sendable (Int64, [UInt8]) -> Void {
    { [weak self] end, value in
      self?.write(upload, SentRange(start: start, end: end, key: key, value: value))
    }
  }

  /// Removes the record of an upload.
  func drop(_ upload: Int64) {
    state.withLock { state in
      guard let slot = state.slots.removeValue(forKey: upload) else { return }
      state.free.append(slot)
      write([UInt8](repeating: 0, count: Self.recordCount), at: slot, state.descriptor)
    }
  }

  /// The record of an upload in this process.
  func range(of upload: Int64) -> SentRange? {
    state.withLock { state in
      guard let slot = state.slots[upload] else { return nil }
      var record = [UInt8](repeating: 0, count: Self.recordCount)
      let count = pread(state.descriptor, &record, record.count, off_t(slot) * off_t(record.count))
      return count == record.count ? Self.decode(record)?.1 : nil
    }
  }

  /// Ranges by upload, of this process or another one; empty if there is no file.
  func ranges(of owner: Int64) -> [Int64: SentRange] {
    let file = path(of: owner).withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    if file < 0 { return [:] }
    defer { close(file) }
    var found: [Int64: SentRange] = [:]
    var record = [UInt8](repeating: 0, count: Self.recordCount)
    while read(file, &record, record.count) == record.count {
      if let (upload, range) = Self.decode(record) { found[upload] = range }
    }
    return found
  }

  /// Call this once the ranges are in the journal.
  func remove(of owner: Int64) { _ = path(of: owner).withCString { unlink($0) } }

  /// Deletes this process's file. Uploads in progress are no longer recorded.
  func remove() {
    state.withLock { state in
      if state.descriptor >= 0 { close(state.descriptor) }
      if let path = state.path { _ = path.withCString { unlink($0) } }
      state = State()
    }
  }

  private func path(of owner: Int64) -> BytePath { BytePath(journal.bytes + Array("-sent-\(owner)".utf8)) }

  private func write(_ upload: Int64, _ range: SentRange) {
    state.withLock { state in
      guard let path = state.path else { return }
      if state.descriptor < 0 {
        state.descriptor = path.withCString { open($0, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
      }
      let slot = state.slots[upload] ?? state.free.popLast() ?? Int64(state.slots.count)
      state.slots[upload] = slot
      write(Self.encode(upload, range), at: slot, state.descriptor)
    }
  }

  /// If writing fails, the next run does not find the record, and sends from the start if in doubt.
  private func write(_ record: [UInt8], at slot: Int64, _ descriptor: Int32) {
    _ = record.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(slot) * off_t($0.count)) }
  }

  private static func encode(_ upload: Int64, _ range: SentRange) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: recordCount) { record, count in
      record.initialize(repeating: 0)
      let bytes = UnsafeMutableRawBufferPointer(record)
      bytes.storeBytes(of: upload.littleEndian, as: Int64.self)
      bytes.storeBytes(of: range.start.littleEndian, toByteOffset: 8, as: Int64.self)
      bytes.storeBytes(of: range.end.littleEndian, toByteOffset: 16, as: Int64.self)
      let values = 24 + range.key.count
      UnsafeMutableRawBufferPointer(rebasing: bytes[24..<values]).copyBytes(from: range.key)
      UnsafeMutableRawBufferPointer(rebasing: bytes[values..<values + range.value.count]).copyBytes(from: range.value)
      count = recordCount
    }
  }

  private static func decode(_ record: [UInt8]) -> (Int64, SentRange)? {
    func number(_ place: Int) -> Int64 {
      record.withUnsafeBytes { Int64(littleEndian: $0.loadUnaligned(fromByteOffset: place * 8, as: Int64.self)) }
    }
    let values = 24 + KeyedChecksum.keyCount
    let (upload, start, end) = (number(0), number(1), number(2))
    guard upload > 0, 0 <= start, start < end else { return nil }
    return (
      upload,
      SentRange(
        start: start, end: end, key: Array(record[24..<values]),
        value: Array(record[values..<values + KeyedChecksum.valueCount]))
    )
  }
}
