import Blobs
import Platform

/// Whether programs have a file open.
enum FileUsers: Sendable {
  case none, some
  /// The system does not tell: on Linux for files of other users, and on some file systems; on other systems for every file.
  case unknown

  /// The programs that count.
  enum Purpose: Sendable {
    /// Those that may write to the file. A file that cannot be opened has none: whoever reads it then reports the error.
    case writing
    /// All programs of this computer but this descriptor's. Of a file that cannot be opened it is unknown.
    case anything
  }

  /// Checks the file at `path` now. This call blocks.
  init(of path: BytePath, for purpose: Purpose) {
    let descriptor = path.open(O_RDONLY | O_NONBLOCK)
    if descriptor < 0 {
      // EAGAIN: a program has a lease on the file, has it open, and may have more to write. The kernel has now asked it to
      // give the lease up.
      self = errno == EAGAIN ? .some : purpose == .writing ? .none : .unknown
      return
    }
    defer { close(descriptor) }
    #if os(Linux)
      self =
        switch purpose == .writing ? fb_is_written(descriptor) : fb_is_open_elsewhere(descriptor) {
        case 0: .none
        case 1: .some
        default: .unknown
        }
    #else
      self = .unknown
    #endif
  }
}
