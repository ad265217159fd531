import Blobs
import Platform

/// The journal of this process, and the files that SQLite and the journal create beside it. They change during a push,
/// so none of them is sent from a folder.
struct JournalFiles: Sendable, Hashable {
  private let folder: BytePath
  private let name: BytePath
  private static let suffixes = ["-wal", "-shm", "-journal", "-sent-", "-seal", "-names-"].map { Array($0.utf8) }

  static let reason = "it belongs to the journal of this push, which changes while files are sent"

  /// `path` is the journal's absolute path.
  init(_ path: BytePath) {
    name = path.name
    folder = path.folder
  }

  /// Whether a file with this status is the journal or one of SQLite's files, by device and inode.
  func contains(_ status: stat) -> Bool {
    ["", "-wal", "-shm", "-journal", "-seal"].contains { suffix in
      var mine = stat()
      let file = BytePath(folder.bytes + name.bytes + suffix.utf8)
      return file.status(&mine) == 0 && mine.st_dev == status.st_dev && mine.st_ino == status.st_ino
    }
  }

  /// Whether the file `name` in `folder` is one of these files. Accesses the file system only if the name fits.
  func contains(_ name: BytePath, in folder: BytePath) -> Bool {
    guard name.bytes.starts(with: self.name.bytes) else { return false }
    let suffix = name.bytes.dropFirst(self.name.bytes.count)
    guard suffix.isEmpty || Self.suffixes.contains(where: { suffix.starts(with: $0) }) else { return false }
    var (mine, other) = (stat(), stat())
    guard self.folder.status(&mine) == 0, folder.status(&other) == 0 else { return false }
    return mine.st_dev == other.st_dev && mine.st_ino == other.st_ino
  }
}
