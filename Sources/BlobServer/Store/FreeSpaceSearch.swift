import Blobs

/// Looks for unknown free room before an upload is refused: in expired uploads, and in published files that the
/// operator has deleted directly.
///
/// Reading the whole tree may take long, so another thread does it. Only one search runs at a time. It is followed by a
/// pause twenty times as long, so that refusals use at most a twentieth of that thread's time.
final class FreeSpaceSearch: Sendable {
  typealias Work = @Sendable () -> Void

  private struct State {
    /// Runs work on another thread.
    var submit: (@Sendable (@escaping Work) -> Void)?
    var measure: Work?
    var isRunning = false
    /// Start of the current search, or of the last one.
    var began = Duration.zero
    /// Duration of the last reading of the tree.
    var took = Duration.zero
    /// Earliest start of the next search.
    var due = Duration.zero
  }
  private let state = Monitor(State())

  /// If the last search took at most this long, uploads wait for the current search, until it has run for
  /// `longestWait`: in a small tree no upload needs to be refused first.
  private static let quick = Duration.milliseconds(250)
  private static let longestWait = Duration.seconds(1)
  private static let shortestPause = Duration.seconds(1)

  /// `measure` reads the tree; reading it took `took` when the server started.
  func setUp(took: Duration, _ measure: @escaping Work) {
    state.update {
      $0.took = took
      $0.measure = measure
    }
  }

  /// `submit` must run the work once, on another thread.
  func onShortage(_ submit: @escaping @Sendable (@escaping Work) -> Void) { state.update { $0.submit = submit } }

  var isRunning: Bool { state.update(waking: .none) { $0.isRunning } }

  /// Starts a search if one is due, and waits for the current search if it is expected to be quick. Returns false if
  /// none runs because the last one has just ended.
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
