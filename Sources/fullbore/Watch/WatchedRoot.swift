import Blobs
import Platform

/// A source of a watch: a folder that may be on a removable card.
struct WatchedRoot: Sendable {
  let path: BytePath
  private(set) var isThere: Bool
  private var mark: [UInt64]

  init(_ path: BytePath) {
    self.path = path
    mark = Self.mark(of: path)
    isThere = !mark.isEmpty
  }

  /// Whether the folder appeared, disappeared or was replaced since the last call.
  mutating func hasChanged() -> Bool {
    let now = Self.mark(of: path)
    defer { (mark, isThere) = (now, !now.isEmpty) }
    return now != mark
  }

  private static func mark(of path: BytePath) -> [UInt64] {
    var status = stat()
    guard path.status(&status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return [] }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }
}
