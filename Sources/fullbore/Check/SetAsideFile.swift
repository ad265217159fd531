import BlobUpload
import Blobs
import Platform

/// A file that has another name in its folder for a moment. Another file that gets the original name meanwhile stays.
/// All calls block.
struct SetAsideFile: Sendable {
  let path: BytePath
  let away: BytePath
  private let folder: OpenedFolder
  let stamp: FileStamp
  /// The stamp under its other name. A program can write to the file and set its modification time back, but not its change
  /// time.
  private let renamed: FileStamp

  /// Keeps a folder open.
  private final class OpenedFolder: Sendable {
    let descriptor: Int32
    init(_ path: BytePath) { descriptor = path.open(O_RDONLY | O_DIRECTORY) }
    deinit { if descriptor >= 0 { close(descriptor) } }
  }

  /// The reason why a file stays.
  struct Failure: Error, Sendable {
    let reason: String
  }

  /// Renames the file. Throws unless it is a version that `isProved` returns true for.
  init(_ path: BytePath, _ isProved: (FileStamp) -> Bool) throws(Failure) {
    (self.path, away) = (path, path.folder.appending(SetAsideName.of(path.name)))
    folder = OpenedFolder(path.folder)
    if folder.descriptor < 0 { throw Self.failure(of: "open \(path.folder)") }
    stamp = try Self.stamp(path, folder)
    if !isProved(stamp) { throw Failure(reason: "\(path.name) has changed since it was proved") }
    try Self.rename(path, to: away, folder)
    renamed = try Self.stamp(away, folder)
  }

  /// Throws if the file is not the version that was proved any more, or may change.
  func checkUnchanged() throws(Failure) {
    try checkStamp()
    // Bytes that a program writes after the file is removed would be lost.
    if case .some = Writers(of: away) { throw Failure(reason: "a program has \(path.name) open for writing") }
  }

  private func checkStamp() throws(Failure) {
    var before = stamp
    // The change time is that of the renaming.
    before.changed = renamed.changed
    if try Self.stamp(away, folder) != before { throw Failure(reason: "\(path.name) has changed since it was proved") }
  }

  /// Gives the file its name back. Returns the stamp that it has then. Throws if the name is taken by now, or if the file has
  /// changed meanwhile.
  @discardableResult
  func giveBack() throws(Failure) -> FileStamp {
    // The name is given back also if it has changed.
    var change: Failure?
    do throws(Failure) { try checkStamp() } catch { change = error }
    do throws(Failure) { try Self.rename(away, to: path, folder) } catch {
      // Another push may have found the file under its other name, and given its own back.
      guard let now = try? Self.stamp(path, folder), now.inode == stamp.inode, now.device == stamp.device else {
        throw Failure(reason: "\(path.name) is now named \(away.name), since this failed: \(error.reason)")
      }
    }
    if let change { throw change }
    return try Self.stamp(path, folder)
  }

  func remove() throws(Failure) {
    if away.name.withCString({ unlinkat(folder.descriptor, $0, 0) }) != 0 {
      throw Self.failure(of: "delete \(path.name)")
    }
  }

  private static func stamp(_ path: BytePath, _ folder: OpenedFolder) throws(Failure) -> FileStamp {
    var status = stat()
    if path.name.withCString({ fstatat(folder.descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) }) != 0 {
      throw failure(of: "look at \(path.name)")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw Failure(reason: "\(path.name) is a symbolic link, or no file")
    }
    return FileStamp(status, at: path)
  }

  private static func rename(_ old: BytePath, to new: BytePath, _ folder: OpenedFolder) throws(Failure) {
    let status = SetAsideName.rename(old.name, to: new.name, in: folder.descriptor)
    if status != 0, errno == ENAMETOOLONG {
      let most = SetAsideName.longest
      throw Failure(
        reason: "\(old.name) must be renamed before it is deleted, and its name is too long for that: shorten it to "
          + "\(most) bytes")
    }
    if status != 0 { throw failure(of: "rename \(old.name) to \(new.name)") }
  }

  private static func failure(of call: String) -> Failure {
    Failure(reason: "\(call): \(String(cString: strerror(errno)))")
  }
}

extension [SetAsideFile] {
  /// Gives all files their names back. Returns `reason`, with what has failed meanwhile.
  func givenBack(_ reason: String) -> String {
    reduce(reason) { reason, file in
      do throws(SetAsideFile.Failure) {
        try file.giveBack()
        return reason
      } catch {
        return error.reason == reason ? reason : "\(reason); \(error.reason)"
      }
    }
  }
}
