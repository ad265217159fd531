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
    /// When it was first seen like this.
    var since: ContinuousClock.Instant
    /// When it is to be looked at again.
    var due: ContinuousClock.Instant
    /// What the kernel's notices say of whoever writes it.
    var notices: Notices
    /// Looks that found it open for writing.
    var busy = 0
  }

  /// The latest notice that concerns the file's content.
  enum Notices: Sendable {
    case none
    /// It was written to, and not closed since.
    case written
    /// Whoever wrote it has closed it, or it was renamed to its name.
    case closed
  }

  /// How long a file must stay as it is.
  let rest: Duration
  /// The same, after a notice that it was closed.
  let restOnceClosed: Duration
  /// The same, where the system does not tell whether someone has the file open, and no notice says that it was closed.
  let restUnseen: Duration
  /// The same, where a notice says that someone has written to it, and none that it was closed. It may never come: some
  /// writes are made without opening the file.
  let restUnclosed: Duration
  /// A file that stays open is looked at ever more seldom, down to this.
  private static let longest = Duration.seconds(30)
  private let limit: Int
  private var files: [BytePath: File] = [:]

  init(rest: Duration, limit: Int = 8192) {
    self.rest = rest
    restOnceClosed = min(rest, .milliseconds(250))
    restUnseen = max(rest, .seconds(60))
    restUnclosed = max(rest, .seconds(900))
    self.limit = limit
  }

  var isEmpty: Bool { files.isEmpty }
  var count: Int { files.count }
  var next: ContinuousClock.Instant? { files.values.map(\.due).min() }
  func contains(_ path: BytePath) -> Bool { files[path] != nil }

  /// A file was seen that may still be written. False: there is no room for one more.
  mutating func note(
    _ path: BytePath, as relative: BytePath, _ stamp: FileStamp, _ notices: Notices = .none, after wait: Duration,
    at now: ContinuousClock.Instant
  ) -> Bool {
    let old = files[path]
    if old == nil && files.count >= limit { return false }
    let since = old?.stamp == stamp ? old!.since : now
    // A walk, or a new name, says nothing of who writes.
    let notices = notices == .none ? old?.notices ?? .none : notices
    files[path] = File(relative: relative, stamp: stamp, since: since, due: now + wait, notices: notices)
    return true
  }

  /// The kernel says that someone writes to a file that is waited for. False: it is not.
  mutating func noteWrite(to path: BytePath) -> Bool {
    guard let place = files.index(forKey: path) else { return false }
    files.values[place].notices = .written
    return true
  }

  /// Notices were lost: what the others say may not be the latest.
  mutating func forgetNotices() {
    for place in files.values.indices { files.values[place].notices = .none }
  }

  mutating func drop(_ path: BytePath) { files[path] = nil }

  /// The files to be looked at now. Each stays until `look` or `drop` is told what was found.
  func due(at now: ContinuousClock.Instant) -> [(path: BytePath, file: File)] {
    files.filter { $0.value.due <= now }.map { ($0.key, $0.value) }
  }

  /// A file that is due is as `stamp` tells. True: it rests, and is forgotten here.
  mutating func look(
    _ path: BytePath, _ stamp: FileStamp, _ writers: Writers, at now: ContinuousClock.Instant
  ) -> Bool {
    guard var file = files[path] else { return false }
    if file.stamp != stamp {
      (file.stamp, file.since, file.due, file.busy) = (stamp, now, now + rest, 0)
    } else if writers == .some || writers == .unknown && file.since.duration(to: now) < unseenRest(file) {
      file.due = now + min(max(rest, .milliseconds(250)) * (1 << min(file.busy, 12)), Self.longest)
      file.busy += 1
    } else {
      files[path] = nil
      return true
    }
    files[path] = file
    return false
  }

  /// How long it must have been as it is where only the notices can tell of writers.
  private func unseenRest(_ file: File) -> Duration {
    switch file.notices {
    case .closed: .zero
    case .none: restUnseen
    case .written: restUnclosed
    }
  }

  /// Not now: look again after `rest`.
  mutating func postpone(_ path: BytePath, at now: ContinuousClock.Instant) { files[path]?.due = now + rest }
}
