import Blobs

/// Asks the servers of URL sources for their files, several concurrently, so that a server that does not respond does
/// not delay other sources.
final class SourceProbes: Sendable {
  struct Answer: Sendable {
    let found: FoundSource
    let result: Result<(source: any BlobSource, info: BlobInfo), BlobError>
  }

  /// Maximum number of concurrent requests. Each uses a thread and a connection of its transport.
  static let most = OpenFiles.mostJobs == nil ? 64 : 8
  /// Maximum number of requests that are recent or have unused answers. A download that can be read only once occupies
  /// its connection from the response until it is sent, so no more of them are begun than will be sent soon.
  private static let mostPrompt = 4
  /// A server that has not responded for this long does not count towards `mostPrompt`.
  private static let patience = Duration.milliseconds(250)

  private struct State {
    /// Start times of the requests without an answer.
    var open: [Int: ContinuousClock.Instant] = [:]
    var asked = 0
    var answers: [Answer] = []
    var isEnded = false

    func mayAsk(at now: ContinuousClock.Instant) -> Bool {
      if isEnded || open.count >= SourceProbes.most { return false }
      let prompt = open.values.count { now - $0 < SourceProbes.patience }
      return prompt + answers.count < SourceProbes.mostPrompt
    }
  }
  private let state = Monitor(State())
  private let cancellation = Cancellation()

  deinit { cancellation.cancel() }

  /// Whether the next source may be requested: `end` was not called, and few requests are pending.
  var mayAsk: Bool { state.update(waking: .none) { $0.mayAsk(at: .now) } }

  /// Declares that no more sources follow. Returns whether answers are still awaited.
  func end() -> Bool {
    state.update { state in
      state.isEnded = true
      return !state.open.isEmpty
    }
  }

  /// Calls `asking` on another thread. Its cancellation is cancelled when nobody needs the answer any more.
  func ask(
    _ found: FoundSource,
    _ asking: @escaping @Sendable (Cancellation) throws(BlobError) -> (source: any BlobSource, info: BlobInfo)
  ) {
    let number = state.update(waking: .none) { state in
      state.asked += 1
      state.open[state.asked] = .now
      return state.asked
    }
    askingThreads.submit { [state, cancellation] in
      let result = Result { () throws(BlobError) in try asking(cancellation) }
      state.update { state in
        state.open[number] = nil
        state.answers.append(Answer(found: found, result: result))
      }
    }
  }

  /// Removes and returns the oldest answer; nil if there is none.
  func takeAnswer() -> Answer? {
    state.update(waking: .none) { $0.answers.isEmpty ? nil : $0.answers.removeFirst() }
  }

  /// Waits until an answer is available or the next source may be requested. Returns false if neither can happen any
  /// more, or if the task was cancelled.
  func wait() async -> Bool {
    let goesOn = await waitingThreads.runUntilCancelled { [state] cancel in
      cancel.whileWaiting(wakeUp: { state.update { _ in } }) {
        while !cancel.isCancelled {
          // A timeout is needed: a request that becomes slow changes `mayAsk` without a wakeup.
          let goesOn = state.wait(atMost: Self.patience) { state -> Bool? in
            if cancel.isCancelled { return false }
            if !state.answers.isEmpty || state.mayAsk(at: .now) { return true }
            return state.isEnded && state.open.isEmpty ? false : nil
          }
          if let goesOn { return goesOn }
        }
        return false
      }
    }
    return goesOn ?? false
  }
}

// A server that never responds occupies its thread until the request times out.
private let askingThreads = BlockingPool("ask-source", threads: SourceProbes.most, patience: .seconds(5))
private let waitingThreads = BlockingPool("await-source", threads: 4, patience: .seconds(5))
