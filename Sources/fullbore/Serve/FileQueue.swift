import BlobServer
import Synchronization

/// A file that was received or sent.
protocol HandedFile: Sendable {
  /// Its name in messages.
  var title: String { get }
}

extension ReceivedFile: HandedFile {
  var title: String { shown(path) }
}

/// Hands files to something slow, one after the other and in order. A limited number waits; further ones are dropped, and
/// the operator is told.
final class FileQueue<File: HandedFile>: Sendable {
  /// A file, and when it was added.
  struct Entry: Sendable {
    let file: File
    let time: Timestamp
  }
  typealias Handler = @Sendable (Entry) async -> Void

  private struct State {
    /// The first one is being handled if `task` is not nil.
    var entries: [Entry] = []
    var dropped = 0
    var task: Task<Void, Never>?
    var hasEnded = false
  }
  private let state = Mutex(State())
  private let name: String
  private let most: Int
  private let notice: @Sendable (String) -> Void
  private let problem: @Sendable () -> String?
  private let handle: Handler

  /// - `name`: what files are handed to, for messages.
  /// - `problem`: why files wait, for messages; nil: that is not known.
  init(
    _ name: String, atMost most: Int = 1000, notice: @escaping @Sendable (String) -> Void,
    problem: @escaping @Sendable () -> String? = { nil }, handle: @escaping Handler
  ) {
    (self.name, self.most, self.notice, self.problem, self.handle) = (name, most, notice, problem, handle)
  }

  /// Does not wait.
  func add(_ file: File) {
    let isFirstDropped = state.withLock { state -> Bool in
      if state.hasEnded || state.entries.count >= most {
        state.dropped += 1
        return state.dropped == 1
      }
      state.entries.append(Entry(file: file, time: .now))
      // Detached from the request or upload of the file, which ends meanwhile.
      if state.task == nil { state.task = Task.detached { await self.run() } }
      return false
    }
    if isFirstDropped {
      notice("\(most) files wait for \(name): further ones are not handed to it until it has caught up")
    }
  }

  private func run() async {
    while let entry = state.withLock({ $0.entries.first }), !Task.isCancelled {
      await handle(entry)
      if Task.isCancelled { return }
      let (isDone, dropped) = state.withLock { state -> (Bool, Int) in
        state.entries.removeFirst()
        // The next file starts a new task.
        if state.entries.isEmpty { state.task = nil }
        if state.entries.count > most / 2 { return (false, 0) }
        defer { state.dropped = 0 }
        return (state.entries.isEmpty, state.dropped)
      }
      tellDropped(dropped)
      if isDone { return }
    }
  }

  private func tellDropped(_ count: Int) {
    if count > 0 {
      notice("\(Quantity.plural(count, "file")) \(count == 1 ? "was" : "were") not handed to \(name)")
    }
  }

  /// Waits until all files were handed over, `limit` at most, and tells the operator how many are left.
  func finish(within limit: Duration) async {
    let deadline = ContinuousClock.now + limit
    while state.withLock({ !$0.entries.isEmpty }), ContinuousClock.now < deadline {
      try? await Task.sleep(for: .milliseconds(20))
    }
    let (left, dropped) = state.withLock { state in
      state.hasEnded = true
      state.task?.cancel()
      return (state.entries, state.dropped)
    }
    if let first = left.first {
      let reason = problem().map { ": \($0)" } ?? ""
      let more = left.count > 1 ? " and \(Quantity.plural(left.count - 1, "further file"))" : ""
      notice("\(name) was not done with '\(first.file.title)'\(more) at the end\(reason)")
    }
    tellDropped(dropped)
  }
}
