import Blobs
import Platform

/// A new folder in the system's temporary folder. It is deleted by `remove` or when this object is deinitialized.
package final class ScratchFolder: Sendable {
  package let path: BytePath
  private static let prefix = "/tmp/fullbore-check-"

  package init() throws {
    var template = Array("\(Self.prefix)XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw CheckFailure("no folder can be made in /tmp: error \(errno)") }
    path = BytePath(cString: template)
  }

  deinit { remove() }

  /// nil if there is no such file.
  package func read(_ name: BytePath) -> [UInt8]? {
    let file = path.appending(name).withCString { open($0, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) }
    if file < 0 { return nil }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { return nil }
    return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, used in
      while used < buffer.count {
        let count = pread(file, buffer.baseAddress! + used, buffer.count - used, off_t(used))
        if count <= 0 { break }
        used += count
      }
    }
  }

  /// 0 if there is no such file.
  package func size(of name: BytePath) -> Int64 {
    var status = stat()
    return path.appending(name).withCString { lstat($0, &status) } == 0 ? Int64(status.st_size) : 0
  }

  /// The names directly in a subfolder; "" is this folder.
  package func names(in folder: BytePath) -> [BytePath] {
    let number = (folder.isEmpty ? path : path.appending(folder)).withCString { openFolder(AT_FDCWD, $0) }
    return number < 0 ? [] : consumeNames(number)
  }

  /// Deletes this folder. Symbolic links are deleted and not followed; other file systems are not entered.
  package func remove() {
    precondition(path.description.hasPrefix(Self.prefix) && path.components.count == 2)
    let folder = path.withCString { openFolder(AT_FDCWD, $0) }
    if folder < 0 { return }
    var status = stat()
    if fstat(folder, &status) == 0, status.st_uid == getuid() { empty(folder, device: status.st_dev) }
    close(folder)
    path.withCString { _ = rmdir($0) }
  }
}

private func openFolder(_ parent: Int32, _ name: UnsafePointer<CChar>) -> Int32 {
  openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
}

/// The names in an open folder. Closes the descriptor.
private func consumeNames(_ folder: Int32) -> [BytePath] {
  guard let stream = fdopendir(folder) else {
    close(folder)
    return []
  }
  defer { closedir(stream) }
  var names: [BytePath] = []
  while let entry = readdir(stream) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { BytePath($0.prefix { $0 != 0 }) }
    if name != ".", name != ".." { names.append(name) }
  }
  return names
}

private func empty(_ folder: Int32, device: dev_t) {
  for name in consumeNames(openFolder(folder, ".")) {
    name.withCString { name in
      var status = stat()
      guard fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_dev == device else { return }
      if status.st_mode & S_IFMT != S_IFDIR {
        unlinkat(folder, name, 0)
        return
      }
      let inner = openFolder(folder, name)
      if inner < 0 { return }
      empty(inner, device: device)
      close(inner)
      unlinkat(folder, name, AT_REMOVEDIR)
    }
  }
}
