import Blobs

/// How much may be under way at once where the process may have few files open.
enum OpenFiles {
  /// Files that may be sent at once; nil: as many as are of use. A file that is sent needs four descriptors at most: itself,
  /// its connection, and those of a connection or file that is just being opened or closed. The rest of the program needs
  /// some forty.
  static let mostJobs: Int? = jobs(within: raiseFileLimit())

  static func jobs(within limit: Int) -> Int? { limit < 512 ? min(64, max(1, (limit - 40) / 4)) : nil }
}
