import BlobSQLite
import Blobs
import Platform

extension Journal {
  /// Like `init`, but a damaged journal is kept aside and a new one begun. Returns where it is kept; nil: it was sound.
  ///
  /// What the old one knew is not known to the new one: files are sent again, and a server that has them compares.
  /// A file that is no database at all is only moved when it is called `….sqlite`; else the error tells.
  public static func opened(
    at path: BytePath, as mark: ProcessMark = .current
  ) async throws(JournalError) -> (journal: Journal, damaged: BytePath?) {
    var kept: BytePath?
    while true {
      let found = FileIdentity(path)
      do {
        return (try await Journal(at: path, as: mark), kept)
      } catch {
        // Another process has begun it, or has moved the damaged one.
        if FileIdentity(path) != found { continue }
        if !error.isDamaged || kept != nil { throw error }
        kept = inOpeningTurn(at: path) { mayBeMoved(path, found) ? keepAside(path, found) : nil }
        if kept == nil, FileIdentity(path) == found { throw error }
      }
    }
  }

  /// Whether `opened(at:)` keeps the damaged journal at `path` aside: false where the file may be something else.
  public static func isKeptAside(at path: BytePath) -> Bool {
    inOpeningTurn(at: path) { mayBeMoved(path, FileIdentity(path)) }
  }

  /// Closes the journal after an error with `isDamaged`, and keeps its files aside: the next one to open it begins a new
  /// one. nil: it stays where it is, since it cannot be moved or is another one by now.
  public func keptAside() -> BytePath? {
    close()
    return inOpeningTurn(at: path) { keepAside(path, identity) }
  }
}

/// Which file it is, whatever it is called.
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

/// `--journal holiday.jpg` is a slip of the hand, and no damaged journal.
///
/// Only in the opening turn, and of the file that was `found`: to open and close the one that another journal of this
/// process has begun in its place would drop that one's locks.
private func mayBeMoved(_ path: BytePath, _ found: FileIdentity?) -> Bool {
  guard let found, FileIdentity(path) == found else { return false }
  if path.bytes.suffix(7) == Array(".sqlite".utf8)[...] { return true }
  let descriptor = path.withCString { open($0, O_RDONLY | O_CLOEXEC) }
  if descriptor < 0 { return false }
  defer { close(descriptor) }
  var magic = [UInt8](repeating: 0, count: 16)
  return read(descriptor, &magic, 16) == 16 && magic == Array("SQLite format 3\0".utf8)
}

/// Moves the file and what SQLite keeps beside it to names with the date, if it still is the one that was `found`:
/// another process may have been quicker. Nothing that is there is written over. nil: it was not moved by this call.
private func keepAside(_ path: BytePath, _ found: FileIdentity?) -> BytePath? {
  guard let found, FileIdentity(path) == found else { return nil }
  let aside = BytePath(path.bytes + Array(".damaged-\(timestamp())".utf8))
  // The log first: beside a new file of the old name, its pages would be taken for that one's.
  for suffix in ["-wal", "-shm", ""] {
    let (old, new) = (BytePath(path.bytes + Array(suffix.utf8)), BytePath(aside.bytes + Array(suffix.utf8)))
    if new.withCString({ access($0, F_OK) }) == 0 { return nil }
    let status = old.withCString { old in new.withCString { new in rename(old, new) } }
    if status != 0, suffix.isEmpty || errno != ENOENT { return nil }
  }
  return aside
}

/// `20261121T203000Z`
private func timestamp() -> String {
  var (now, parts) = (time(nil), tm())
  gmtime_r(&now, &parts)
  var text = [CChar](repeating: 0, count: 32)
  let count = strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
  return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}
