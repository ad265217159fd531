import Blobs

/// Looks for room that nobody knows of yet, before an upload is refused: in uploads that have expired, and in published
/// files that the operator has deleted past the server.
///
/// Reading the whole tree may take long, so that another thread does it. One search runs at a time. A pause follows that
/// is twenty times as long as the search, so that refusals cost a twentieth of that thread's time at most.
final class RoomSearch: Sendable {
  typealias Work = @Sendable () -> Void

  private struct State {
    /// Runs work on another thread.
    var submit: (@Sendable (@escaping Work) -> Void)?
    var measure: Work?
    var isRunning = false
    /// When the search began that runs, or the last one.
    var began = Duration.zero
    /// How long reading the tree took the last time.
    var took = Duration.zero
    /// When the next search may begin.
    var due = Duration.zero
  }
  private let state = Monitor(State())

  /// Where the last search was quicker than this, uploads wait for the one that runs, until it has run for `longestWait`:
  /// on a small tree none of them needs to be refused first.
  private static let quick = Duration.milliseconds(250)
  private static let longestWait = Duration.seconds(1)
  private static let shortestPause = Duration.seconds(1)

  /// `measure` reads the tree, which took `took` when the server started.
  func setUp(took: Duration, _ measure: @escaping Work) {
    state.update {
      $0.took = took
      $0.measure = measure
    }
  }

  /// `submit` must run what it is given once, on another thread.
  func onShortage(_ submit: @escaping @Sendable (@escaping Work) -> Void) { state.update { $0.submit = submit } }

  var isRunning: Bool { state.update(waking: .none) { $0.isRunning } }

  /// Begins a search if one is due, and waits for the one that runs if it is a quick one. False where none runs, since the
  /// last one ended just now.
  func run() -> Bool {
    let now = MonotonicClock().now
    let (isRunning, begin) = state.update(waking: .none) { state -> (Bool, Work?) in
      if state.isRunning { return (true, nil) }
      guard let submit = state.submit, let measure = state.measure, now >= state.due else { return (false, nil) }
      state.isRunning = true
      state.began = now
      return (
        true,
        {
          submit {
            measure()
            self.ended()
          }
        }
      )
    }
    begin?()
    if isRunning { waitIfQuick() }
    return isRunning
  }

  private func waitIfQuick() {
    let limit = state.update(waking: .none) { state in
      state.took <= Self.quick ? state.began + Self.longestWait - MonotonicClock().now : .zero
    }
    if limit > .zero { _ = state.wait(atMost: limit) { $0.isRunning ? nil : () } }
  }

  private func ended() {
    let now = MonotonicClock().now
    state.update { state in
      state.isRunning = false
      state.took = now - state.began
      state.due = now + max(Self.shortestPause, state.took * 20)
    }
  }
}
