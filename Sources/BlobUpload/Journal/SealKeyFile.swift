import BlobCrypto
import Blobs
import Platform

/// A key in a file beside the journal, for its owner alone.
///
/// The key that encrypts the seals of unfinished uploads is deleted when no upload needs it. Nobody can then open the
/// remains of deleted rows in the journal.
///
/// All calls block, and are made inside a transaction of the journal, so that one process at a time makes or deletes it.
struct SealKeyFile {
  let path: BytePath

  init(at path: BytePath) { self.path = path }

  /// The file of the key for the seals.
  init(beside journal: BytePath) { self.init(at: BytePath(journal.bytes + Array("-seal".utf8))) }

  /// nil: there is none, or others could have read it.
  func read() -> [UInt8]? {
    let file = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
    if file < 0 { return nil }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o077 == 0,
      status.st_uid == geteuid()
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: 33)
    let count = Platform.read(file, &bytes, bytes.count)
    let key = Array(bytes.prefix(max(0, count)))
    // After a power failure, a file may have zeros instead of its content.
    return key.count == 32 && key.contains { $0 != 0 } ? key : nil
  }

  /// Makes it, in place of one that cannot be used.
  func make(_ key: [UInt8]) throws(JournalError) {
    delete()
    let file = path.withCString { open($0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600) }
    defer { if file >= 0 { close(file) } }
    guard file >= 0, write(file, key, key.count) == key.count, fsync(file) == 0 else {
      let reason = String(cString: strerror(errno))
      delete()
      throw JournalError("\(path), a key that sealed uploads need, cannot be written: \(reason)")
    }
  }

  var exists: Bool { path.withCString { access($0, F_OK) } == 0 }

  func delete() { _ = path.withCString { unlink($0) } }
}
