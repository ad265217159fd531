import Blobs
import Platform

/// The symbolic links of a watch. The kernel tells of a write only in the folder of the file itself, so the targets are
/// checked from time to time.
struct WatchedLinks {
  private struct Link {
    /// The path below the source.
    let relative: BytePath
    /// The stamp of the target; nil: it does not exist.
    var target: FileStamp?
  }

  /// A check takes at most this part of the time, also where a network drive answers slowly.
  private static let share = 10
  private let limit: Int
  private let interval: Duration
  private var links: [BytePath: Link] = [:]
  private var due = ContinuousClock.now

  init(limit: Int = 8192, interval: Duration = .seconds(10)) { (self.limit, self.interval) = (limit, interval) }

  /// Some links are not checked, because there are too many.
  private(set) var isIncomplete = false
  /// When to call `takeChanged` again; nil: there are no links.
  var next: ContinuousClock.Instant? { links.isEmpty ? nil : due }

  /// Call this before everything is walked, which finds the links that are still there.
  mutating func beginWalk() { isIncomplete = false }

  /// Adds `path` if it is a symbolic link. Its target was found, or is checked, just now.
  mutating func note(_ path: BytePath, as relative: BytePath) {
    guard path.isSymbolicLink else { return }
    if links[path] == nil && links.count >= limit {
      isIncomplete = true
      return
    }
    if links.isEmpty { due = .now + interval }
    links[path] = Link(relative: relative, target: Self.target(of: path))
  }

  /// The links whose targets have changed since the last check, or have appeared. Returns none before `next`.
  mutating func takeChanged() -> [(path: BytePath, relative: BytePath)] {
    let began = ContinuousClock.now
    if links.isEmpty || began < due { return [] }
    var changed: [(BytePath, BytePath)] = []
    for (path, link) in links {
      guard path.isSymbolicLink else {
        links[path] = nil
        continue
      }
      let target = Self.target(of: path)
      if target == link.target { continue }
      links[path]?.target = target
      if target != nil { changed.append((path, link.relative)) }
    }
    due = .now + max(interval, began.duration(to: .now) * Self.share)
    return changed
  }

  private static func target(of path: BytePath) -> FileStamp? {
    var status = stat()
    guard path.status(&status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return FileStamp(status, at: path)
  }
}

extension BytePath {
  /// Whether a symbolic link is at this path.
  fileprivate var isSymbolicLink: Bool {
    var status = stat()
    return withCString { lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFLNK
  }
}
