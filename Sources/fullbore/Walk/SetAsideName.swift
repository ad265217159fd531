import Blobs
import Platform

/// The name that `push --delete-after-verify` gives a file in its folder for a moment, before it deletes it:
/// `NAME.fullbore-NUMBER`. The number follows from the name, so that the next push recognises the file after a SIGKILL or a
/// power failure, also on another computer.
enum SetAsideName {
  private static let mark = Array(".fullbore-".utf8)

  /// How a walk treats a file that still has such a name.
  enum Rule: Sendable, Hashable {
    /// The file is passed over in silence: the process that has renamed it may be running.
    case passOver
    /// The file gets its own name back.
    case giveBack
    /// The file is reported as one that cannot be read.
    case fail
  }

  /// The length in bytes up to which each name can get such a name, where names may have 255 bytes.
  static let longest = 255 - mark.count - String(UInt32.max).utf8.count

  static func of(_ name: BytePath) -> BytePath { BytePath(name.bytes + mark + number(of: name.bytes[...])) }

  /// The name that the file had before; nil: this is no such name.
  static func original(of name: BytePath) -> BytePath? {
    let bytes = name.bytes
    let digits = bytes.reversed().prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }.count
    let end = bytes.count - digits - mark.count
    // Nearly all names end here.
    guard 1...10 ~= digits, end > 0, bytes[end...].starts(with: mark) else { return nil }
    return number(of: bytes[..<end]).elementsEqual(bytes.suffix(digits)) ? BytePath(bytes[..<end]) : nil
  }

  /// Renames a file in an open folder. Fails with EEXIST if the new name is that of another file.
  ///
  /// Where a file system has no such rename (NFS), the file is linked to its new name, and then the old name is removed. A
  /// process that was killed in between leaves both names, and only the second step remains.
  static func rename(_ name: BytePath, to new: BytePath, in folder: Int32) -> Int32 {
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

  /// A file that a walk has found under such a name.
  struct Found: Sendable {
    /// nil: nothing is reported.
    let event: TreeEvent?
    /// The name that the file has again; nil: it keeps this one.
    let original: BytePath?
    /// The file already had that name too, so that the walk of its folder finds it without more.
    private(set) var hadBothNames = false

    /// nil: `name` is none of these names. `folder`: an absolute path. This call blocks.
    init?(_ name: BytePath, in folder: BytePath, _ rule: Rule) {
      guard let original = SetAsideName.original(of: name) else { return nil }
      let path = folder.appending(name)
      let reason = "an interrupted push --delete-after-verify had renamed it to \(name)"
      switch rule {
      case .passOver: (event, self.original) = (nil, nil)
      case .fail:
        let reason = "an interrupted push --delete-after-verify has renamed it to \(name); push gives the name back"
        (event, self.original) = (.failed(path, message: reason), nil)
      case .giveBack:
        var status = stat()
        let isTaken = folder.appending(original).status(&status) == 0
        if Self.rename(name, to: original, in: folder) {
          event = .noticed("\(folder.appending(original)): has its name back, since \(reason)")
          self.original = original
          hadBothNames = isTaken
        } else {
          let why = errno == EEXIST ? "there is another file of that name" : String(cString: strerror(errno))
          event = .noticed(
            "\(path): is passed over. It is \(original), which an interrupted push --delete-after-verify has renamed, and cannot "
              + "get that name back: \(why)")
          self.original = nil
        }
      }
    }

    /// The event of a source that the user has named, under its own or its other name; nil: it needs none. A name that was given
    /// back is put before the other sources.
    static func atRoot(_ roots: inout [BytePath], _ root: BytePath, _ rule: Rule) -> TreeEvent? {
      let path = root.absolute()
      var (name, status) = (path.name, stat())
      if rule == .giveBack, SetAsideName.original(of: name) == nil, path.status(&status) != 0, errno == ENOENT {
        // The file may still have its other name.
        name = SetAsideName.of(name)
        if path.folder.appending(name).status(&status) != 0 { return nil }
      }
      guard rule != .passOver, let found = Found(name, in: path.folder, rule) else { return nil }
      if let original = found.original { roots.append(BytePath(root.folder.bytes + original.bytes)) }
      return found.event
    }

    /// Returns false with the reason in `errno`.
    private static func rename(_ name: BytePath, to new: BytePath, in folder: BytePath) -> Bool {
      let descriptor = folder.open(O_RDONLY | O_DIRECTORY)
      if descriptor < 0 { return false }
      let status = SetAsideName.rename(name, to: new, in: descriptor)
      let number = errno
      close(descriptor)
      errno = number
      return status == 0
    }
  }
}
