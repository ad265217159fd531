import Blobs
import Platform

/// How much may be under way at once where the process may have few files open.
enum OpenFiles {
  /// Files that may be sent at once; nil: as many as are of use. A file that is sent needs four descriptors at most: itself,
  /// its connection, and those of a connection or file that is just being opened or closed. The rest of the program needs
  /// some forty.
  static let mostJobs: Int? = jobs(within: raiseFileLimit())

  /// The program was started without it. By now its number may be that of a descriptor of the runtime's own, such as epoll's,
  /// which is no file of any type.
  static var standardInputIsClosed: Bool {
    var status = stat()
    return fstat(0, &status) != 0 || status.st_mode & S_IFMT == 0
  }

  static func jobs(within limit: Int) -> Int? { limit < 512 ? min(64, max(1, (limit - 40) / 4)) : nil }
}
