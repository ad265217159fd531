import Blobs

/// Decides when files that were changed are at rest, for a limited number of files.
///
/// A pure state machine: it does not access the clock or the file system.
struct Settling {
  struct File: Sendable, Hashable {
    /// The path below its source.
    let relative: BytePath
    /// The stamp of the last check.
    var stamp: FileStamp
    /// When the file first had this stamp.
    var since: ContinuousClock.Instant
    /// When to check the file again.
    var due: ContinuousClock.Instant
    /// What the events of its folder say about writers.
    var notices: Notices
    /// Number of checks that found the file open for writing.
    var busy = 0
  }

  /// The latest event about the file's content.
  enum Notices: Sendable {
    case none
    /// The file was written to and not closed since.
    case written
    /// A writer has closed the file, or it was renamed to this name.
    case closed
  }

  /// How long a file must stay unchanged.
  let rest: Duration
  /// The same, after an event that the file was closed.
  let restOnceClosed: Duration
  /// The same, if the system does not report writers and there was no event that the file was closed.
  let restUnseen: Duration
  /// The same, after an event that the file was written and none that it was closed. The event of the close may never
  /// come, because some writes do not open the file.
  let restUnclosed: Duration
  /// Upper limit of the growing interval between checks of a file that stays open.
  private static let longest = Duration.seconds(30)
  private let limit: Int
  private var files: [BytePath: File] = [:]

  /// `waitsOnceClosed`: a file that was closed must stay unchanged as long as any other, because its writer may open it
  /// again.
  init(rest: Duration, waitsOnceClosed: Bool = false, limit: Int = 8192) {
    self.rest = rest
    restOnceClosed = waitsOnceClosed ? rest : min(rest, .milliseconds(250))
    restUnseen = max(rest, .seconds(60))
    restUnclosed = max(rest, .seconds(900))
    self.limit = limit
  }

  var isEmpty: Bool { files.isEmpty }
  var count: Int { files.count }
  var next: ContinuousClock.Instant? { files.values.map(\.due).min() }
  func contains(_ path: BytePath) -> Bool { files[path] != nil }

  /// Adds a file that may still be written. Returns false if the limit is reached.
  mutating func note(
    _ path: BytePath, as relative: BytePath, _ stamp: FileStamp, _ notices: Notices = .none, after wait: Duration,
    at now: ContinuousClock.Instant
  ) -> Bool {
    let old = files[path]
    if old == nil && files.count >= limit { return false }
    let since = old?.stamp == stamp ? old!.since : now
    // A walk or a rename says nothing about writers, so the earlier state is kept.
    let notices = notices == .none ? old?.notices ?? .none : notices
    files[path] = File(relative: relative, stamp: stamp, since: since, due: now + wait, notices: notices)
    return true
  }

  /// Records an event that the file was written. Returns false if the file is not tracked.
  mutating func noteWrite(to path: BytePath) -> Bool {
    guard let place = files.index(forKey: path) else { return false }
    files.values[place].notices = .written
    return true
  }

  /// Call this after events were lost, because the recorded ones may be outdated.
  mutating func forgetNotices() {
    for place in files.values.indices { files.values[place].notices = .none }
  }

  mutating func drop(_ path: BytePath) { files[path] = nil }

  /// The files to check now, in the order that the options want. Each stays until `look` or `drop` is called for it.
  func due(at now: ContinuousClock.Instant, _ options: TreeOptions = TreeOptions()) -> [(path: BytePath, file: File)] {
    let due = files.filter { $0.value.due <= now }.map { (path: $0.key, file: $0.value) }
    let order = options.mostPhotos == nil ? nil : PhotoPlace.order(of: due.count) { PhotoPlace(due[$0].path) }
    return order?.map { due[$0] } ?? due
  }

  /// Updates a file that is due with its current stamp and writers. Returns true if it is at rest, and then stops
  /// tracking it.
  mutating func look(
    _ path: BytePath, _ stamp: FileStamp, _ writers: FileUsers, at now: ContinuousClock.Instant
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

  /// How long the file must have been unchanged if only events can tell about writers.
  private func unseenRest(_ file: File) -> Duration {
    switch file.notices {
    case .closed: .zero
    case .none: restUnseen
    case .written: restUnclosed
    }
  }

  /// Checks the file again after `rest`.
  mutating func postpone(_ path: BytePath, at now: ContinuousClock.Instant) { files[path]?.due = now + rest }
}
