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

  /// Whether the path is below this folder.
  func contains(_ other: BytePath) -> Bool {
    other.bytes.starts(with: path.bytes) && other.bytes.dropFirst(path.bytes.count).first == UInt8(ascii: "/")
  }

  /// Call this if something below the folder was not found, or the folder was moved: if it is away, or has been away, its
  /// return counts as a change, however short the time was.
  mutating func noteAbsence(isCertain: Bool) {
    if isCertain || Self.mark(of: path) != mark { mark = [.max] }
  }

  private static func mark(of path: BytePath) -> [UInt64] {
    var status = stat()
    guard path.status(&status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return [] }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }
}
