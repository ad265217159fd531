import BlobUpload
import Blobs
import Platform
import Synchronization

/// The sources whose content was proved at the destination, each in one version.
final class ProvedFiles: Sendable {
  enum Removal: Sendable {
    /// The file, with the other files of its photo.
    case removed([BytePath])
    /// The file is not there any more.
    case gone
    /// The file was not proved, which was reported then.
    case unproved
    case stays(String)
  }
  private let found = Atomic(0)
  /// The number of proved files.
  var count: Int { found.load(ordering: .relaxed) }
  /// A table has 20 bits of a version's hash: two of them make it safe to remove a file by it.
  private let tables = [ClaimedNames(), ClaimedNames()]

  func note(_ path: BytePath, _ version: Validator) {
    found.add(1, ordering: .relaxed)
    for (number, table) in tables.enumerated() {
      table.give(Self.key(path, number), to: Self.version(version, number))
    }
  }

  /// Whether this version of the file is proved.
  private func has(_ path: BytePath, _ version: Validator) -> Bool {
    tables.indices.allSatisfy { tables[$0].isTaken(Self.key(path, $0), by: Self.version(version, $0)) }
  }

  /// Removes a file and the other files of its photo, if all of them are still the versions that were proved. `names`:
  /// of those files, in the same folder; empty: it belongs to no photo. This call blocks.
  func remove(_ path: BytePath, with names: [BytePath]) -> Removal {
    let descriptor = path.folder.open(O_RDONLY | O_DIRECTORY)
    if descriptor < 0 { return .stays(String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var status = stat()
    if path.name.withCString({ fstatat(descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) }) != 0, errno == ENOENT {
      return .gone
    }
    // An earlier run may have removed only some of the files of a photo.
    let members = (names.isEmpty ? [path.name] : names).filter { name in
      name.withCString { fstatat(descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) } == 0 || errno != ENOENT
    }
    // First the file itself: if it was not proved, that was reported, whatever the others are.
    for name in [path.name] + members.filter({ $0 != path.name }) {
      switch look(at: name, in: path.folder, descriptor) {
      case nil: continue
      case .unproved? where name == path.name: return .unproved
      case .unproved?: return .stays("\(name), which belongs to it, is not proved at the destination")
      case let other?: return other
      }
    }
    return remove(members.map { path.folder.appending($0) })
  }

  /// Each file gets another name before it is looked at for the last time, so that no file is removed that another program
  /// puts in its place.
  private func remove(_ paths: [BytePath]) -> Removal {
    var aside: [SetAsideFile] = []
    var removed: [BytePath] = []
    do throws(SetAsideFile.Failure) {
      for path in paths { aside.append(try SetAsideFile(path) { has(path, $0.validator) }) }
      for file in aside { try file.checkUnchanged() }
      while let file = aside.first {
        try file.remove()
        removed.append(file.path)
        aside.removeFirst()
      }
      return .removed(removed)
    } catch {
      let reason = aside.givenBack(error.reason)
      return removed.isEmpty ? .stays(reason) : .removed(removed)
    }
  }

  /// nil: the file is still the version that was proved.
  private func look(at name: BytePath, in folder: BytePath, _ descriptor: Int32) -> Removal? {
    var status = stat()
    if name.withCString({ fstatat(descriptor, $0, &status, AT_SYMLINK_NOFOLLOW) }) != 0 {
      return .stays("\(name): \(String(cString: strerror(errno)))")
    }
    guard status.st_mode & S_IFMT == S_IFREG else { return .stays("\(name) is a symbolic link, or no file") }
    let path = folder.appending(name)
    // No version is empty.
    if tables[0].isFree(Self.key(path, 0), for: "") { return .unproved }
    if !has(path, FileStamp(status, at: path).validator) { return .stays("\(name) has changed since it was proved") }
    // Bytes that a program writes after the file is removed would be lost.
    if case .some = FileUsers(of: path, for: .writing) { return .stays("a program has \(name) open for writing") }
    return nil
  }

  // The hashes in the two tables are of different bytes, and so independent of each other.
  private static func key(_ path: BytePath, _ table: Int) -> BytePath { BytePath(path.bytes + [UInt8(table)]) }
  private static func version(_ validator: Validator, _ table: Int) -> BytePath {
    BytePath("\(table) \(validator.version) \(validator.instance)")
  }
}
