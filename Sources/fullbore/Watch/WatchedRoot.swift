import Blobs
import Platform

/// The sources of a watch, which are looked at every two seconds.
struct WatchedRoots: Sendable {
  private let sources: [BytePath]
  private var roots: [WatchedRoot]
  /// When they are looked at next.
  private(set) var due = ContinuousClock.now
  private static let interval = Duration.seconds(2)

  init(_ sources: [BytePath]) {
    self.sources = sources
    roots = sources.map { WatchedRoot($0.absolute()) }
  }

  /// The sources that were there at the last look, as the user gave them.
  var there: [BytePath] { zip(roots, sources).filter { $0.0.isThere }.map(\.1) }

  /// The sources that were removed, have returned or were replaced since the last look; empty if no look is due.
  mutating func takeChanged() -> [WatchedRoot] {
    if ContinuousClock.now < due { return [] }
    due = .now + Self.interval
    return roots.indices.compactMap { roots[$0].hasChanged() ? roots[$0] : nil }
  }

  /// Something was not found that was there before. If its source is away, and not only the file, the source is walked
  /// again when it is back, however short the time was: what has changed in the meantime was not reported.
  mutating func noteAbsence(of path: BytePath) {
    for index in roots.indices where roots[index].contains(path) && roots[index].noteIfAway() { due = .now }
  }

  /// A watched folder was moved, which matters if it is a source.
  mutating func noteMove(of path: BytePath) {
    for index in roots.indices where path.bytes.count <= roots[index].path.bytes.count && roots[index].contains(path) {
      roots[index].noteAway()
      due = .now
    }
  }
}

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

  /// Whether the path is that of this folder, or below it.
  func contains(_ other: BytePath) -> Bool { Self.contains(other, in: path) }

  /// Whether the path is that of the folder `path`, or below it.
  static func contains(_ other: BytePath, in path: BytePath) -> Bool {
    let slash = UInt8(ascii: "/")
    let folder = path.bytes.last == slash ? path.bytes.dropLast() : path.bytes[...]
    guard other.bytes.starts(with: folder) else { return false }
    return other.bytes.count == folder.count || other.bytes[folder.count] == slash
  }

  /// Whether the folder is away now, so that its return counts as a change.
  mutating func noteIfAway() -> Bool {
    if Self.mark(of: path) == mark { return false }
    noteAway()
    return true
  }

  /// The folder was away, so that the next look finds a change.
  mutating func noteAway() { mark = [.max] }

  private static func mark(of path: BytePath) -> [UInt64] {
    var status = stat()
    guard path.status(&status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return [] }
    return [UInt64(status.st_dev), UInt64(status.st_ino)]
  }
}
