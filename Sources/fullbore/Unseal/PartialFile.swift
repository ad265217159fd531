import BlobCrypto
import BlobServer
import Blobs
import Platform

/// A file that is restored under a temporary name. All of it blocks.
struct PartialFile {
  /// Bytes after which what was written is synced to the disk.
  static let syncedAtOnce: Int64 = 32 << 20

  let descriptor: Descriptor
  /// The path of the restored file, for messages.
  let path: BytePath
  private let state: RestoreState
  /// nil: the version of the source is unknown, so that a later run does not go on in this file.
  private let key: RestoreState.Key?
  private let name: BytePath

  init(_ key: RestoreState.Key?, of path: BytePath, in state: RestoreState) throws(BlobError) {
    name = key?.fileName ?? BytePath("\(UInt64.random(in: .min ... .max)).part")
    descriptor = try state.folder.open(name, O_RDWR | O_CREAT)
    (self.path, self.state, self.key) = (path, state, key)
  }

  /// Bytes at the beginning that an earlier run has written and synced: whole chunks, and never the last one, so that the
  /// end of the source is always checked. Bytes that were not synced may be lost after a power cut, with the length of
  /// the file unchanged.
  func kept(of length: Int64?) throws(BlobError) -> Int64 {
    guard let key, let length else { return 0 }
    var status = stat()
    if fstat(descriptor.number, &status) != 0 { throw RestoreFolder.failure("look at", path) }
    let synced = state.synced(key)
    return synced <= Int64(status.st_size) && synced < length ? synced : 0
  }

  /// Removes the bytes from an offset on.
  func cut(at offset: Int64) throws(BlobError) {
    // The bytes that are written instead are not synced.
    if let key, offset < state.synced(key) { try state.noteSynced(key, offset) }
    if ftruncate(descriptor.number, off_t(offset)) != 0 { throw writeFailure(at: offset, of: nil) }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64, of length: Int64?) throws(BlobError) {
    var done = 0
    while done < bytes.count {
      let count = pwrite(
        descriptor.number, bytes.baseAddress! + done, bytes.count - done, off_t(offset) + off_t(done))
      if count < 0, errno == EINTR { continue }
      if count == 0 { errno = ENOSPC }
      if count <= 0 { throw writeFailure(at: offset, of: length) }
      done += count
    }
  }

  /// Syncs what was written up to an offset, and notes it for a later run.
  func keep(_ offset: Int64) throws(BlobError) {
    let chunk = Int64(FileSeal.chunk)
    let kept = max(0, offset - 1) / chunk * chunk
    guard let key, kept > state.synced(key) else { return }
    if fsync(descriptor.number) != 0 { throw writeFailure(at: offset, of: nil) }
    try state.noteSynced(key, kept)
  }

  /// Gives the file its time and its name, once all of it is on the disk.
  func publish(
    _ modified: Int64?, as name: BytePath, in folder: RestoreFolder, replacing: Bool
  ) throws(BlobError) {
    if let modified { setTime(modified) }
    if fsync(descriptor.number) != 0 { throw writeFailure(at: nil, of: nil) }
    let from = state.folder.number
    let result = self.name.withCString { old in
      name.withCString { new in
        replacing ? renameat(from, old, folder.number, new) : renameNew(from, old, folder.number, new)
      }
    }
    if result != 0, errno == EEXIST {
      throw BlobError(.io, "\(path): another program has just made a file of that name, which is not replaced")
    }
    if result != 0 { throw RestoreFolder.failure("give the restored file its name", path) }
    try folder.sync()
  }

  /// Removes the file if no later run goes on in it.
  func discardUnknown() {
    if key == nil { _ = name.withCString { unlinkat(state.folder.number, $0, 0) } }
  }

  /// A file system that cannot keep the time keeps another one.
  private func setTime(_ nanoseconds: Int64) {
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let time = timespec(
      tv_sec: time_t(rest < 0 ? seconds - 1 : seconds), tv_nsec: Int(rest < 0 ? rest + 1_000_000_000 : rest))
    _ = futimens(descriptor.number, [time, time])
  }

  /// The error for `errno`, with the room that is left.
  private func writeFailure(at offset: Int64?, of length: Int64?) -> BlobError {
    let number = errno
    var message = "write \(path): \(String(cString: strerror(number)))"
    if let offset { message += " at byte \(offset)\(length.map { " of \($0)" } ?? "")" }
    var volume = statvfs()
    if Self.isFull(number), fstatvfs(descriptor.number, &volume) == 0 {
      let free = Int64(
        clamping: UInt64(volume.f_bavail).multipliedReportingOverflow(by: UInt64(volume.f_frsize)).partialValue)
      message +=
        "; \(Quantity.text(bytes: free)) are free there. Make room, then run the same command again: it goes on"
    }
    return BlobError(.io, message, errno: number)
  }

  /// Whether nothing else can be written either.
  static func isFull(_ number: Int32) -> Bool { [ENOSPC, EDQUOT, EROFS].contains(number) }
}
