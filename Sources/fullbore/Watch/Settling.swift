import Blobs

/// Files that were seen to move, until they rest: a bounded number of them.
///
/// It decides by what it is told, and asks no one: neither the clock nor the file system.
struct Settling {
  struct File: Sendable, Hashable {
    /// Below its source.
    let relative: BytePath
    /// As it was when it was last looked at.
    var stamp: FileStamp
    /// When it is to be looked at again.
    var due: ContinuousClock.Instant
    /// Looks that found it open for writing.
    var busy = 0
  }

  /// How long a file must stay as it is.
  let rest: Duration
  /// How long after whoever wrote it has closed it, or it was renamed to its name.
  let restOnceClosed: Duration
  /// A file that stays open is looked at ever more seldom, down to this.
  private static let longest = Duration.seconds(30)
  private let limit: Int
  private var files: [BytePath: File] = [:]

  init(rest: Duration, limit: Int = 8192) {
    self.rest = rest
    restOnceClosed = min(rest, .milliseconds(250))
    self.limit = limit
  }

  var isEmpty: Bool { files.isEmpty }
  var count: Int { files.count }
  var next: ContinuousClock.Instant? { files.values.map(\.due).min() }
  func contains(_ path: BytePath) -> Bool { files[path] != nil }

  /// A file was seen that may still be written. False: there is no room for one more.
  mutating func note(
    _ path: BytePath, as relative: BytePath, _ stamp: FileStamp, after wait: Duration, at now: ContinuousClock.Instant
  ) -> Bool {
    if files[path] == nil && files.count >= limit { return false }
    files[path] = File(relative: relative, stamp: stamp, due: now + wait)
    return true
  }

  mutating func drop(_ path: BytePath) { files[path] = nil }

  /// The files to be looked at now. Each stays until `look` or `drop` is told what was found.
  func due(at now: ContinuousClock.Instant) -> [(path: BytePath, file: File)] {
    files.filter { $0.value.due <= now }.map { ($0.key, $0.value) }
  }

  /// A file that is due is as `stamp` tells. True: it rests, and is forgotten here.
  mutating func look(
    _ path: BytePath, _ stamp: FileStamp, isWritten: Bool, at now: ContinuousClock.Instant
  ) -> Bool {
    guard var file = files[path] else { return false }
    if file.stamp != stamp {
      (file.stamp, file.due, file.busy) = (stamp, now + rest, 0)
    } else if isWritten {
      file.due = now + min(max(rest, .milliseconds(250)) * (1 << min(file.busy, 12)), Self.longest)
      file.busy += 1
    } else {
      files[path] = nil
      return true
    }
    files[path] = file
    return false
  }

  /// Not now: look again after `rest`.
  mutating func postpone(_ path: BytePath, at now: ContinuousClock.Instant) { files[path]?.due = now + rest }
}
