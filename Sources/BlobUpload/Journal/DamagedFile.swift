import Blobs
import Platform

/// Identifies a file by device and inode, independent of its name.
struct FileIdentity: Sendable, Hashable {
  private let device: UInt64
  private let inode: UInt64

  init?(_ path: BytePath) {
    var status = stat()
    if path.withCString({ lstat($0, &status) }) != 0 || status.st_mode & S_IFMT != S_IFREG { return nil }
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(status.st_ino)
  }
}

/// Whether the file may be moved aside: a user who passes `--journal holiday.jpg` by mistake has no damaged journal.
///
/// Must be called while the opening lock is held, and only for the file that was `found`: if another journal of this
/// process were already open at this path, opening and closing the file here would release that journal's POSIX locks.
func mayBeMoved(_ path: BytePath, _ found: FileIdentity?) -> Bool {
  guard let found, FileIdentity(path) == found else { return false }
  if path.bytes.suffix(7) == Array(".sqlite".utf8)[...] { return true }
  let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
  if descriptor < 0 { return false }
  defer { close(descriptor) }
  var magic = [UInt8](repeating: 0, count: 16)
  return read(descriptor, &magic, 16) == 16 && magic == Array("SQLite format 3\0".utf8)
}

/// Moves the file and SQLite's auxiliary files to names with the date, if the file is still the one that was `found`:
/// another process may have moved it first. Existing files are not overwritten. nil: this call did not move it.
func keepAside(_ path: BytePath, _ found: FileIdentity?) -> BytePath? {
  guard let found, FileIdentity(path) == found else { return nil }
  let aside = BytePath(path.bytes + Array(".damaged-\(timestamp())".utf8))
  // The log moves first: SQLite would apply its pages to a new file with the old name.
  for suffix in ["-wal", "-shm", ""] {
    let (old, new) = (BytePath(path.bytes + Array(suffix.utf8)), BytePath(aside.bytes + Array(suffix.utf8)))
    if new.withCString({ access($0, F_OK) }) == 0 { return nil }
    let status = old.withCString { old in new.withCString { new in rename(old, new) } }
    if status != 0, suffix.isEmpty || errno != ENOENT { return nil }
  }
  return aside
}

/// The current time in UTC, as in `20261121T203000Z`.
private func timestamp() -> String {
  var (now, parts) = (time(nil), tm())
  gmtime_r(&now, &parts)
  var text = [CChar](repeating: 0, count: 32)
  let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
  return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
