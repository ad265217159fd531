import Synchronization

/// What a server was found to do, while it was spoken to.
final class S3Acquaintance: Sendable {
  private struct State {
    var heedsChecksums: Bool?
    /// It has refused a body without one.
    var demandsChecksums = false
    /// Bytes of bodies under way that are to show it.
    var asking: Int64 = 0
    var waiting: [CheckedContinuation<Void, Never>] = []

    mutating func takeWaiting() -> [CheckedContinuation<Void, Never>] {
      defer { waiting = [] }
      return waiting
    }
  }
  private let state = Mutex(State())

  /// Bytes that may be under way before anything is known. On the way to a distant server they are enough until the first
  /// answer.
  static let mostAsking: Int64 = 16 << 20

  /// It looks at checksums; nil: it has not had any yet.
  var heedsChecksums: Bool? { state.withLock { $0.heedsChecksums } }

  /// Bodies that wait.
  var waiting: Int { state.withLock { $0.waiting.count } }

  /// It took a body with a checksum before it. Who works it out says what came of it.
  func note(echo: String?) {
    let waiting = state.withLock { state in
      state.heedsChecksums = echo != nil || state.demandsChecksums
      return state.takeWaiting()
    }
    for waiter in waiting { waiter.resume() }
  }

  /// It has refused a body for its want of a checksum: from now on all have one, whether it tells them again or not.
  func demandChecksums() {
    state.withLock { ($0.heedsChecksums, $0.demandsChecksums) = (true, true) }
  }

  /// Runs `body`, which sends so many bytes, perhaps read for their checksum first. As long as nobody knows whether that is
  /// for nothing, it waits for those who ask. Waiting is not cancelled: whoever is inside ends soon when everything is.
  func asking<Result, Failure>(
    with bytes: Int64, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    while await !mayGo(with: bytes) {}
    defer { leave(with: bytes) }
    return try await body()
  }

  /// false: it has waited, and what is known may have changed.
  private func mayGo(with bytes: Int64) async -> Bool {
    var mayGo = true
    await withCheckedContinuation { continuation in
      mayGo = state.withLock { state in
        if state.heedsChecksums == nil, state.asking > 0, state.asking + bytes > Self.mostAsking {
          state.waiting.append(continuation)
          return false
        }
        state.asking += bytes
        return true
      }
      if mayGo { continuation.resume() }
    }
    return mayGo
  }

  private func leave(with bytes: Int64) {
    let waiting = state.withLock { state in
      state.asking -= bytes
      return state.takeWaiting()
    }
    for waiter in waiting { waiter.resume() }
  }
}
