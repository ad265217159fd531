import BlobUpload
import Blobs
import Platform

/// A file that has another name in its folder for a moment. Another file that gets the original name meanwhile stays.
/// All calls block.
struct SetAsideFile: Sendable {
  let path: BytePath
  /// The path below its folder that it has meanwhile.
  let awayName: BytePath
  private let folder: OpenedFolder
  let stamp: FileStamp
  /// The stamp under its other name. A program can write to the file and set its modification time back, but not its change
  /// time.
  private let renamed: FileStamp

  /// Keeps a folder open.
  private final class OpenedFolder: Sendable {
    let path: BytePath
    let descriptor: Int32
    init(_ path: BytePath) { (self.path, descriptor) = (path, path.open(O_RDONLY | O_DIRECTORY)) }
    deinit { if descriptor >= 0 { close(descriptor) } }
  }

  /// The reason why a file stays.
  struct Failure: Error, Sendable {
    let reason: String
    /// The error number of the system's call that has failed; nil: none has.
    var number: Int32?
  }

  /// The path that it has meanwhile.
  var away: BytePath { path.folder.appending(awayName) }

  /// Renames the file. Throws unless it is a version that `isProved` returns true for.
  init(_ path: BytePath, _ isProved: (FileStamp) -> Bool) throws(Failure) {
    self.path = path
    folder = OpenedFolder(path.folder)
    if folder.descriptor < 0 { throw Self.failure(of: "open \(path.folder)") }
    stamp = try Self.stamp(path.name, folder)
    if !isProved(stamp) { throw Failure(reason: "\(path.name) has changed since it was proved") }
    awayName = try Self.setAside(path.name, folder)
    renamed = try Self.stamp(awayName, folder)
  }

  /// Returns the path below its folder that the file has now.
  private static func setAside(_ name: BytePath, _ folder: OpenedFolder) throws(Failure) -> BytePath {
    let (first, second) = (SetAsideName.of(name), SetAsideName.inFolder(name))
    do throws(Failure) {
      try rename(name, to: first, folder)
      return first
    } catch {
      guard error.number == ENAMETOOLONG else { throw error }
      try rename(name, to: second, folder)
      return second
    }
  }

  /// Throws if the file is not the version that was proved any more, or may change.
  func checkUnchanged() throws(Failure) {
    try checkStamp()
    // Bytes that a program writes after the file is removed would be lost.
    if case .some = FileUsers(of: away, for: .writing) {
      throw Failure(reason: "a program has \(path.name) open for writing")
    }
  }

  private func checkStamp() throws(Failure) {
    var before = stamp
    // The change time is that of the renaming.
    before.changed = renamed.changed
    if try Self.stamp(awayName, folder) != before {
      throw Failure(reason: "\(path.name) has changed since it was proved")
    }
  }

  /// Gives the file its name back. Returns the stamp that it has then. Throws if the name is taken by now, or if the file has
  /// changed meanwhile.
  ///
  /// `isProved`: the destination has the content, so that a file whose name is taken by a newer version is removed. That
  /// version would have replaced it if it had kept its name. Returns nil then.
  @discardableResult
  func giveBack(isProved: Bool) throws(Failure) -> FileStamp? {
    // The name is given back also if it has changed.
    var change: Failure?
    do throws(Failure) { try checkStamp() } catch { change = error }
    do throws(Failure) { try Self.rename(awayName, to: path.name, folder) } catch {
      // Another push may have found the file under its other name, and given its own back.
      if let now = try? Self.stamp(path.name, folder), now.inode == stamp.inode, now.device == stamp.device {
        if let change { throw change }
        return now
      }
      if isProved, error.number == EEXIST, (try? checkUnchanged()) != nil, (try? remove()) != nil { return nil }
      throw Failure(reason: "\(path.name) is now named \(awayName), since this failed: \(error.reason)")
    }
    if let change { throw change }
    return try Self.stamp(path.name, folder)
  }

  func remove() throws(Failure) {
    if awayName.withCString({ unlinkat(folder.descriptor, $0, 0) }) != 0 {
      throw Self.failure(of: "delete \(path.name)")
    }
    SetAsideName.removeFolder(of: awayName, in: folder.descriptor)
  }

  /// `name`: a path below the folder.
  private static func stamp(_ name: BytePath, _ folder: OpenedFolder) throws(Failure) -> FileStamp {
    var status = stat()
    if name.withCString({ fstatat(folder.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) }) != 0 {
      throw failure(of: "look at \(name)")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw Failure(reason: "\(name) is a symbolic link, or no file")
    }
    return FileStamp(status, at: folder.path.appending(name))
  }

  private static func rename(_ old: BytePath, to new: BytePath, _ folder: OpenedFolder) throws(Failure) {
    if SetAsideName.rename(old, to: new, in: folder.descriptor) != 0 { throw failure(of: "rename \(old) to \(new)") }
  }

  private static func failure(of call: String) -> Failure {
    let number = errno
    return Failure(reason: "\(call): \(String(cString: strerror(number)))", number: number)
  }
}

extension [SetAsideFile] {
  /// Gives all files, which are proved, their names back. Returns `reason`, with what has failed meanwhile.
  func givenBack(_ reason: String) -> String {
    reduce(reason) { reason, file in
      do throws(SetAsideFile.Failure) {
        try file.giveBack(isProved: true)
        return reason
      } catch {
        return error.reason == reason ? reason : "\(reason); \(error.reason)"
      }
    }
  }
}
