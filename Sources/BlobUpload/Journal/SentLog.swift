import BlobCrypto
import Blobs
import Platform
import Synchronization

/// What one process has under way, by the byte: a small file beside the journal.
///
/// A checksum must be kept before its bytes leave, or a SIGKILL in between would leave the server with bytes nobody can
/// vouch for. A commit for each block read costs too much; overwriting 128 bytes in the page cache takes a microsecond
/// and outlives the process as well. Whoever takes over a dead owner's claims moves its ranges into the journal.
final class SentLog: Sendable {
  // Never across two pages: a kill cannot tear it. What a power cut tears does not match the source, that is all.
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

  /// From now on the file is the one of `owner`. One of that name was left by the owner of a journal that is no more.
  func start(as owner: Int64) {
    let path = path(of: owner)
    _ = path.withCString { unlink($0) }
    state.withLock { $0.path = path }
  }

  /// Begins a range of an upload, in place of the last one. The closure keeps what was sent of it so far; it is quick.
  func begin(_ upload: Int64, from start: Int64, key: [UInt8]) -> @Sendable (Int64, [UInt8]) -> Void {
    { [weak self] end, value in
      self?.write(upload, SentRange(start: start, end: end, key: key, value: value))
    }
  }

  /// Forgets what an upload had under way.
  func drop(_ upload: Int64) {
    state.withLock { state in
      guard let slot = state.slots.removeValue(forKey: upload) else { return }
      state.free.append(slot)
      write([UInt8](repeating: 0, count: Self.recordCount), at: slot, state.descriptor)
    }
  }

  /// What an upload had under way, in this process.
  func range(of upload: Int64) -> SentRange? {
    state.withLock { state in
      guard let slot = state.slots[upload] else { return nil }
      var record = [UInt8](repeating: 0, count: Self.recordCount)
      let count = pread(state.descriptor, &record, record.count, off_t(slot) * off_t(record.count))
      return count == record.count ? Self.decode(record)?.1 : nil
    }
  }

  /// Ranges by upload, of this process or another one; empty where there is no such file.
  func ranges(of owner: Int64) -> [Int64: SentRange] {
    let file = path(of: owner).withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    if file < 0 { return [:] }
    defer { close(file) }
    var found: [Int64: SentRange] = [:]
    var record = [UInt8](repeating: 0, count: Self.recordCount)
    while read(file, &record, record.count) == record.count {
      if let (upload, range) = Self.decode(record) { found[upload] = range }
    }
    return found
  }

  /// Once its ranges are in the journal.
  func remove(of owner: Int64) { _ = path(of: owner).withCString { unlink($0) } }

  /// Deletes this process's file. What is still under way is kept no more.
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

  /// What cannot be written is not there for the next run, which then sends from the start if it has doubts.
  private func write(_ record: [UInt8], at slot: Int64, _ descriptor: Int32) {
    _ = record.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(slot) * off_t($0.count)) }
  }

  private static func encode(_ upload: Int64, _ range: SentRange) -> [UInt8] {
    var record: [UInt8] = []
    record.reserveCapacity(recordCount)
    for number in [upload, range.start, range.end] {
      withUnsafeBytes(of: number.littleEndian) { record.append(contentsOf: $0) }
    }
    record += range.key + range.value
    return record + [UInt8](repeating: 0, count: recordCount - record.count)
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
