import Synchronization

/// What was learned about an S3 server during this run.
final class S3ServerFacts: Sendable {
  private struct State {
    var heedsChecksums: Bool?
    /// The server has rejected a body without a checksum.
    var demandsChecksums = false
    /// Bytes of the bodies under way while it is still unknown whether the server checks checksums.
    var asking: Int64 = 0
    var waiting: [CheckedContinuation<Void, Never>] = []

    mutating func takeWaiting() -> [CheckedContinuation<Void, Never>] {
      defer { waiting = [] }
      return waiting
    }
  }
  private let state = Mutex(State())

  /// Bytes that may be under way before anything is known. With a distant server this suffices until the first
  /// response.
  static let mostAsking: Int64 = 16 << 20

  /// The server verifies checksums; nil: it has received none yet.
  var heedsChecksums: Bool? { state.withLock { $0.heedsChecksums } }

  /// The number of bodies that wait.
  var waiting: Int { state.withLock { $0.waiting.count } }

  /// The server has accepted a body with a checksum sent ahead of it. `echo`: the checksum that the server has
  /// computed; nil: none.
  func note(echo: String?) {
    let waiting = state.withLock { state in
      state.heedsChecksums = echo != nil || state.demandsChecksums
      return state.takeWaiting()
    }
    for waiter in waiting { waiter.resume() }
  }

  /// The server has rejected a body without a checksum: from now on all bodies have one, whether or not the server
  /// returns it.
  func demandChecksums() {
    state.withLock { ($0.heedsChecksums, $0.demandsChecksums) = (true, true) }
  }

  /// Runs `body`, which sends this many bytes, perhaps after reading them for their checksum. While it is unknown
  /// whether the checksum is of use, it waits for other bodies under way. The wait is not cancelled: the others end
  /// soon if everything is cancelled.
  func asking<Result, Failure>(
    with bytes: Int64, _ body: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    while await !mayGo(with: bytes) {}
    defer { leave(with: bytes) }
    return try await body()
  }

  /// false: it has waited, and the state may have changed.
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
