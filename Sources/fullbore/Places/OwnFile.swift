import Blobs
import Platform

/// Reads `config.toml`, whose commands run as this user, so that nobody else may decide what is in it.
enum OwnFile {
  private static let most = 64 << 10

  /// The content of the file, which may be reached by a symbolic link; nil: there is no such file. Throws if another user
  /// can write the file, or can put another file in its place.
  static func bytes(of path: BytePath) throws(UsageError) -> [UInt8]? {
    guard let real = try target(of: path) else { return nil }
    if real != path { close(try openFolder(of: path)) }
    let folder = try openFolder(of: real)
    defer { close(folder) }
    // The checks and the reading concern one descriptor, so a file that is moved to this name meanwhile is not read. A
    // pipe must not block here.
    let descriptor = real.name.withCString { openat(folder, $0, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) }
    if descriptor < 0 {
      if errno == ENOENT { return nil }
      throw failure(path)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(path) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw UsageError("\(shown(path)): this is no regular file") }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw UsageError("\(shown(path)) belongs to another user, who could have any command run: it is not used")
    }
    guard status.st_mode & 0o022 == 0 else {
      throw UsageError(
        "\(shown(path)) can be written by other users, who could have any command run: chmod go-w \(shown(path))")
    }
    return try content(of: descriptor, path)
  }

  /// The path without symbolic links; nil: there is no such file.
  private static func target(of path: BytePath) throws(UsageError) -> BytePath? {
    if let real = path.absolute().resolved() { return real }
    if errno == ENOENT || errno == ENOTDIR { return nil }
    throw failure(path)
  }

  /// A descriptor of the folder with the file. Throws if another user can put files into it.
  private static func openFolder(of file: BytePath) throws(UsageError) -> Int32 {
    let folder = file.absolute().folder
    let descriptor = folder.open(O_RDONLY | O_DIRECTORY)
    if descriptor < 0 { throw failure(folder) }
    var status = stat()
    do throws(UsageError) {
      guard fstat(descriptor, &status) == 0 else { throw failure(folder) }
      guard status.st_uid == geteuid() || status.st_uid == 0 else {
        throw UsageError(
          "\(shown(file)) is not used: its folder belongs to another user, who could put another file in its place and have "
            + "any command run. Set XDG_CONFIG_HOME to a folder of your own")
      }
      // In a folder with the sticky bit, others cannot rename or remove the file.
      guard status.st_mode & 0o022 == 0 || status.st_mode & mode_t(S_ISVTX) != 0 else {
        throw UsageError(
          "\(shown(file)) is not used: other users can write its folder, put another file in its place and have any command "
            + "run: chmod go-w \(shown(folder))")
      }
      return descriptor
    } catch {
      close(descriptor)
      throw error
    }
  }

  private static func content(of descriptor: Int32, _ path: BytePath) throws(UsageError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: most + 1)
    var count = 0
    while count < bytes.count {
      let start = count
      let got = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + start, $0.count - start) }
      if got == 0 { break }
      if got > 0 { count += got } else if errno != EINTR { throw failure(path) }
    }
    if count > most { throw UsageError("\(shown(path)): over \(most) bytes are too many for this file") }
    return Array(bytes.prefix(count))
  }

  private static func failure(_ path: BytePath) -> UsageError {
    UsageError("\(shown(path)): \(String(cString: strerror(errno)))")
  }
}
