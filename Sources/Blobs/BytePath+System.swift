import Platform

// A path may be longer than the system accepts in one call (PATH_MAX). Then its folders are opened step by step.
extension BytePath {
  /// Calls `open(2)` without a mode. Returns -1 on failure, with the reason in `errno`.
  package func open(_ flags: Int32) -> Int32 {
    fromNearFolder { folder, rest in openAt(folder, rest, flags | O_CLOEXEC) }
  }

  /// Calls `stat(2)`, which follows links. Returns -1 on failure, with the reason in `errno`.
  package func status(_ status: inout stat) -> Int32 {
    var found = stat()
    let result = fromNearFolder { folder, rest in statusAt(folder, rest, &found) }
    status = found
    return result
  }

  /// The absolute path of the same file without symbolic links; nil, with `errno`: there is no such file.
  package func resolved() -> BytePath? {
    guard let path = withCString({ realpath($0, nil) }) else { return nil }
    defer { free(path) }
    return BytePath(cString: path)
  }

  /// The path to which this symbolic link leads, which may not exist; nil: this is no symbolic link.
  package func linkTarget() -> BytePath? {
    let most = Int(PATH_MAX)
    var buffer = [CChar](repeating: 0, count: most)
    let count = withCString { readlink($0, &buffer, most) }
    guard count > 0, count < most else { return nil }
    let target = BytePath(buffer.prefix(count).map { UInt8(bitPattern: $0) })
    return target.isAbsolute ? target : folder.appending(target)
  }

  /// Calls `body` with an open folder (or `AT_FDCWD`) and the rest of the path relative to that folder.
  private func fromNearFolder(_ body: (Int32, UnsafePointer<CChar>) -> Int32) -> Int32 {
    if bytes.count < Int(PATH_MAX) { return withCString { body(AT_FDCWD, $0) } }
    var folder = AT_FDCWD
    defer { if folder != AT_FDCWD { close(folder) } }
    var rest = bytes[...]
    while rest.count >= Int(PATH_MAX) {
      guard let slash = rest.prefix(Int(PATH_MAX) - 1).lastIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else {
        errno = ENAMETOOLONG
        return -1
      }
      let next = BytePath(rest[..<slash]).withCString { openAt(folder, $0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
      if next < 0 { return -1 }
      if folder != AT_FDCWD { close(folder) }
      folder = next
      rest = rest[slash...].drop { $0 == UInt8(ascii: "/") }
    }
    return BytePath(rest).withCString { body(folder, $0) }
  }
}

private func openAt(_ folder: Int32, _ path: UnsafePointer<CChar>, _ flags: Int32) -> Int32 {
  openat(folder, path, flags)
}

private func statusAt(_ folder: Int32, _ path: UnsafePointer<CChar>, _ status: inout stat) -> Int32 {
  fstatat(folder, path, &status, 0)
}
