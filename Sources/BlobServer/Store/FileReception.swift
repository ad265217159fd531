import BlobCrypto
import Blobs
import Platform
import Synchronization

/// A growing data file. Its size is the upload's offset, so no other file needs to be written while bytes arrive.
final class FileReception: Reception {
  let id: UploadID
  let file: Descriptor
  private let store: Folder
  private let quota: Quota
  private struct State {
    var length: Int64
    /// The length up to which quota is reserved; beyond that it must reserve more.
    var room: Int64
    /// Offset of the first provisional byte, which is not verified yet; nil: there is none.
    var held: Int64?
  }
  private let state: Mutex<State>

  init(_ id: UploadID, _ file: Descriptor, length: Int64, _ store: Folder, _ quota: Quota) {
    self.store = store
    self.id = id
    self.file = file
    self.quota = quota
    state = Mutex(State(length: length, room: quota.room(of: id)))
  }

  var length: Int64 { state.withLock { $0.length } }

  // Appended bytes are in the file at once.
  var safeLength: Int64 { length }
  func expect(_: Int64?) {}
  func settle() {}
  func retreat() {}

  func append(_ piece: BodyPiece) throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      let end = state.length + Int64(piece.count)
      if end > state.room { state.room = try quota.reserve(id, held: end) }
      var done = 0
      while done < piece.count {
        let count = piece.write(to: file, at: state.length, after: done)
        if count < 0, errno == EINTR { continue }
        if count == 0 { errno = ENOSPC }
        if count <= 0 { throw failed("store at byte \(state.length) of upload", id.description) }
        state.length += Int64(count)
        done += count
      }
    }
  }

  func hold() throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      _ = try store.open(ProvisionalMark(id: id, start: state.length).name, O_WRONLY | O_CREAT)
      state.held = state.length
    }
  }

  func keep() throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      guard let start = state.held else { return }
      if !store.unlink(ProvisionalMark(id: id, start: start).name) {
        throw store.failed("keep the bytes of upload", id.description)
      }
      state.held = nil
    }
  }

  func drop() throws(ServerError) {
    try state.withLock { (state) throws(ServerError) in
      guard let start = state.held else { return }
      if ftruncate(file.number, off_t(start)) != 0 { throw store.failed("drop bytes of upload", id.description) }
      state.length = start
      quota.shrink(id, held: start)
      state.room = quota.room(of: id)
      if !store.unlink(ProvisionalMark(id: id, start: start).name) {
        throw store.failed("drop bytes of upload", id.description)
      }
      state.held = nil
    }
  }

  func discard() {
    let held = state.withLock { $0.held }
    if let held { store.unlink(ProvisionalMark(id: id, start: held).name) }
    store.unlink(id.data)
    quota.release(id)
  }

  /// Syncs the bytes to disk.
  func sync() throws(ServerError) {
    if fsync(file.number) != 0 { throw store.failed("sync upload", id.description) }
  }

  /// Whether `other`, which has the same length, has the same bytes. Throws 503 when `cancel` is cancelled, and 500 if
  /// either file cannot be read, because then the result is unknown.
  func hasSameBytes(as other: Descriptor, _ cancel: Cancellation) throws(ServerError) -> Bool {
    let size = 256 << 10
    let buffer = UnsafeMutableRawPointer.allocate(byteCount: 2 * size, alignment: 4096)
    defer { buffer.deallocate() }
    let total = length
    var offset: Int64 = 0
    while offset < total {
      if cancel.isCancelled { throw ServerError(503, "the server is stopping") }
      let count = Int(min(Int64(size), total - offset))
      if try Self.read(file, buffer, count, offset, { "read upload \(id)" }) < count {
        throw ServerError(500, "upload \(id) ends before its \(total) bytes")
      }
      // The other file may have been truncated meanwhile.
      if try Self.read(other, buffer + size, count, offset, { "read the file that has the name" }) < count {
        return false
      }
      if memcmp(buffer, buffer + size, count) != 0 { return false }
      offset += Int64(count)
    }
    return true
  }

  /// Throws 503 when `cancel` is cancelled.
  func digests(
    _ algorithms: [Digest.Algorithm], _ cancel: Cancellation
  ) throws(ServerError) -> [Digest.Algorithm: [UInt8]] {
    try Self.digests(algorithms, of: file, length: length, cancel, { "read upload \(self.id)" }) ?? [:]
  }

  /// Computes digests of the first `length` bytes of an open file. Returns nil if `isWanted`, called every 16 MiB,
  /// returns false.
  static func digests(
    _ algorithms: [Digest.Algorithm], of file: Descriptor, length total: Int64, _ cancel: Cancellation,
    _ what: () -> String, while isWanted: () -> Bool = { true }
  ) throws(ServerError) -> [Digest.Algorithm: [UInt8]]? {
    let digests = algorithms.map { Digest($0) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while offset < total {
      if cancel.isCancelled { throw ServerError(503, "the server is stopping") }
      if offset % (16 << 20) == 0, offset > 0, !isWanted() { return nil }
      let count = Int(min(Int64(buffer.count), total - offset))
      if try read(file, buffer.baseAddress!, count, offset, what) < count {
        throw ServerError(500, "\(what()): it ends before its \(total) bytes")
      }
      for digest in digests { digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
      offset += Int64(count)
    }
    return Dictionary(uniqueKeysWithValues: digests.map { ($0.algorithm, $0.value()) })
  }

  /// Returns the number of bytes read: fewer than `count` only at the end of the file. Throws 500 if the disk cannot
  /// read them.
  private static func read(
    _ file: Descriptor, _ buffer: UnsafeMutableRawPointer, _ count: Int, _ at: Int64, _ what: () -> String
  ) throws(ServerError) -> Int {
    var done = 0
    while done < count {
      let got = pread(file.number, buffer + done, count - done, off_t(at) + off_t(done))
      if got < 0, errno == EINTR { continue }
      if got < 0 {
        return try ServerError.retryable { () throws(ServerError) -> Int in throw failed(what(), "at byte \(at)") }
      }
      if got == 0 { break }
      done += got
    }
    return done
  }
}
