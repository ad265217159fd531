import Blobs

/// Asks the servers of URL sources what is there, several at once: a server that does not answer holds up no other source.
final class SourceQuestions: Sendable {
  struct Answer: Sendable {
    let found: FoundSource
    let result: Result<(source: any BlobSource, info: BlobInfo), BlobError>
  }

  /// Questions that may be open at once. Each has a thread, and a connection of the transport that it is sent over.
  static let most = OpenFiles.mostJobs == nil ? 64 : 8
  /// As many servers are asked at once that may answer soon. A download that can be had only once holds its connection
  /// from the answer until it is sent, so that no more of them are begun than are sent soon.
  private static let mostPrompt = 4
  /// A server that has not answered for so long does not keep further ones from being asked.
  private static let patience = Duration.milliseconds(250)

  private struct State {
    /// When each question was asked that is not answered yet.
    var open: [Int: ContinuousClock.Instant] = [:]
    var asked = 0
    var answers: [Answer] = []
    var isEnded = false

    func mayAsk(at now: ContinuousClock.Instant) -> Bool {
      if isEnded || open.count >= SourceQuestions.most { return false }
      let prompt = open.values.count { now - $0 < SourceQuestions.patience }
      return prompt + answers.count < SourceQuestions.mostPrompt
    }
  }
  private let state = Monitor(State())
  private let cancellation = Cancellation()

  deinit { cancellation.cancel() }

  /// Whether the next source may be looked for: `end` was not called, and few questions are open.
  var mayAsk: Bool { state.update(waking: .none) { $0.mayAsk(at: .now) } }

  /// No more sources follow.
  func end() { state.update { $0.isEnded = true } }

  /// Asks on another thread, by `asking`, which hears when nobody wants the answer any more.
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

  /// An answer that has come and was not taken yet.
  func takeAnswer() -> Answer? {
    state.update(waking: .none) { $0.answers.isEmpty ? nil : $0.answers.removeFirst() }
  }

  /// Waits until an answer has come or the next source may be looked for. False: neither will ever be, or the task was
  /// cancelled.
  func wait() async -> Bool {
    let goesOn = await waitingThreads.runUntilCancelled { [state] cancel in
      cancel.whileWaiting(wakeUp: { state.update { _ in } }) {
        while !cancel.isCancelled {
          // A question that has become slow changes what may be asked, and wakes nobody.
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

// A server that never answers keeps its thread until its time is over.
private let askingThreads = BlockingPool("ask-source", threads: SourceQuestions.most, patience: .seconds(5))
private let waitingThreads = BlockingPool("await-source", threads: 4, patience: .seconds(5))
