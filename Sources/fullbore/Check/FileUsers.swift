import Blobs
import Platform

/// Whether a program of this machine has a file open, for whatever purpose.
enum FileUsers: Sendable {
  case none, some
  /// The system does not tell: on Linux for files of other users, and on some file systems; on other systems for every file.
  case unknown

  /// Checks the file at `path` now. This call blocks.
  init(of path: BytePath) {
    let descriptor = path.open(O_RDONLY | O_NONBLOCK)
    if descriptor < 0 {
      // EAGAIN: a program has a lease on the file, and so has it open.
      self = errno == EAGAIN ? .some : .unknown
      return
    }
    defer { close(descriptor) }
    #if os(Linux)
      self =
        switch fb_is_open_elsewhere(descriptor) {
        case 0: .none
        case 1: .some
        default: .unknown
        }
    #else
      self = .unknown
    #endif
  }
}
