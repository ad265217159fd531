import Blobs
import Platform

/// Whether a process has a file open for writing.
enum Writers: Sendable {
  case none, some
  /// The system does not report this: on Linux for files of other users, and on some file systems; on other systems for
  /// every file.
  case unknown

  /// Checks the file at `path` now.
  init(of path: BytePath) {
    let descriptor = path.open(O_RDONLY | O_NONBLOCK)
    if descriptor < 0 {
      // EAGAIN: a program with a lease on the file may have more to write. The kernel has now asked it to give the lease
      // up. Another error is reported when the file is read.
      self = errno == EAGAIN ? .some : .none
      return
    }
    defer { close(descriptor) }
    #if os(Linux)
      self =
        switch fb_is_written(descriptor) {
        case 0: .none
        case 1: .some
        default: .unknown
        }
    #else
      self = .unknown
    #endif
  }
}

extension Settling {
  /// Whether a file that a walk has found was left alone for long enough, and has no writer. This call blocks.
  func isAtRest(_ item: TreeItem) -> Bool {
    let age = Duration.nanoseconds(FileStamp.now.subtractingClamped(item.stamp.changed))
    if age <= rest { return false }
    let writers = Writers(of: item.path)
    return writers == .none || writers == .unknown && age > restUnseen
  }
}
