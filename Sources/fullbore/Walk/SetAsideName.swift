import Blobs
import Platform

/// The name that `push --delete-after-verify` gives a file in its folder for a moment, before it deletes it:
/// `NAME.fullbore-NUMBER`. The number follows from the name, so that the next push recognises the file after a SIGKILL or a
/// power failure, also on another computer. A file whose name is too long for that is moved to a folder beside it, in which it
/// keeps its name.
enum SetAsideName {
  private static let mark = Array(".fullbore-".utf8)
  /// The name of that folder.
  static let folder: BytePath = ".fullbore-aside"

  /// How a walk treats a file that still has such a name.
  enum Rule: Sendable, Hashable {
    /// The file is passed over in silence: the process that has renamed it may be running.
    case passOver
    /// The file gets its own name back.
    case giveBack
    /// The file is reported as one that cannot be read.
    case fail
  }

  static func of(_ name: BytePath) -> BytePath { BytePath(name.bytes + mark + number(of: name.bytes[...])) }

  /// The path of the file below its folder where the name that `of` returns is too long.
  static func inFolder(_ name: BytePath) -> BytePath { folder.appending(name) }

  /// The paths below its folder that a file may have, the first one that its file system takes.
  static func all(for name: BytePath) -> [BytePath] { [of(name), inFolder(name)] }

  /// The name that the file had before; nil: this is no such name, or path below the file's folder.
  static func original(of name: BytePath) -> BytePath? {
    let bytes = name.bytes
    if isInFolder(name) { return name.name }
    let digits = bytes.reversed().prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }.count
    let end = bytes.count - digits - mark.count
    // Nearly all names end here.
    guard 1...10 ~= digits, end > 0, bytes[end...].starts(with: mark) else { return nil }
    return number(of: bytes[..<end]).elementsEqual(bytes.suffix(digits)) ? BytePath(bytes[..<end]) : nil
  }

  private static func isInFolder(_ path: BytePath) -> Bool {
    path.bytes.starts(with: folder.bytes + [UInt8(ascii: "/")])
  }

  /// Renames a file in an open folder. Fails with EEXIST if the new name is that of another file. Makes the folder for long
  /// names if the new name is in it, and removes that once it is empty.
  static func rename(_ name: BytePath, to new: BytePath, in folder: Int32) -> Int32 {
    // The folder may be removed by another process before the file is in it.
    var tries = isInFolder(new) ? 3 : 1
    while true {
      if isInFolder(new) { _ = Self.folder.withCString { mkdirat(folder, $0, 0o700) } }
      let status = renameNow(name, to: new, in: folder)
      tries -= 1
      if status != 0, errno == ENOENT, tries > 0 { continue }
      removeFolder(of: status == 0 ? name : new, in: folder)
      return status
    }
  }

  /// Removes the folder for long names if `name` was in it, and it is empty. Keeps `errno`.
  static func removeFolder(of name: BytePath, in folder: Int32) {
    if !isInFolder(name) { return }
    let number = errno
    // The folder stays while it has files.
    _ = Self.folder.withCString { unlinkat(folder, $0, AT_REMOVEDIR) }
    errno = number
  }

  /// Where a file system has no such rename (NFS), the file is linked to its new name, and then the old name is removed. A
  /// process that was killed in between leaves both names, and only the second step remains.
  private static func renameNow(_ name: BytePath, to new: BytePath, in folder: Int32) -> Int32 {
    name.withCString { name in
      new.withCString { new in
        if renameNew(folder, name, folder, new) == 0 { return 0 }
        if errno != EEXIST { return -1 }
        if areLinks(name, new, in: folder) { return unlinkat(folder, name, 0) }
        errno = EEXIST
        return -1
      }
    }
  }

  private static func areLinks(
    _ name: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>, in folder: Int32
  ) -> Bool {
    var (first, second) = (stat(), stat())
    return fstatat(folder, name, &first, AT_SYMLINK_NOFOLLOW) == 0
      && fstatat(folder, other, &second, AT_SYMLINK_NOFOLLOW) == 0 && first.st_mode & S_IFMT == S_IFREG
      && first.st_nlink > 1 && first.st_ino == second.st_ino && first.st_dev == second.st_dev
  }

  private static func number(of name: ArraySlice<UInt8>) -> String.UTF8View {
    let digest = SHA256.value(of: Array("fullbore set aside ".utf8) + name)
    return String(digest.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }).utf8
  }
}
