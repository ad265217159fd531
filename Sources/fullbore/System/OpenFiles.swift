import Blobs
import Platform

/// Adapts the concurrency to a low limit of open files.
enum OpenFiles {
  /// Maximum number of files to send concurrently; nil if the limit does not matter. A file needs at most four
  /// descriptors: its own, its connection's, and those of a connection or file that is being opened or closed. The rest
  /// of the program needs about forty.
  static let mostJobs: Int? = mostJobs(ofEach: 1)

  /// The same for each of several destinations.
  static func mostJobs(ofEach destinations: Int) -> Int? {
    jobs(within: 40 + max(0, raiseFileLimit() - 40) / destinations)
  }

  /// The program was started with standard input closed. Descriptor 0 may since have been reused by the runtime, for
  /// example by epoll, whose descriptor has no file type.
  static var standardInputIsClosed: Bool {
    var status = stat()
    return fstat(0, &status) != 0 || status.st_mode & S_IFMT == 0
  }

  static func jobs(within limit: Int) -> Int? { limit < 512 ? min(64, max(1, (limit - 40) / 4)) : nil }
}
