import Blobs

/// Bytes of a response's body on their way from another computer: a thread that may block brings them, and an event loop
/// sends them. At most `capacity` bytes wait, apart from those of one `write`.
package final class ContentFeed: Sendable {
  /// The next bytes.
  package enum Next: Sendable {
    case bytes([UInt8])
    /// Nothing has come yet. `wake` is called when something comes.
    case nothing
    case end
    case failed
  }
  private struct State {
    var bytes: [UInt8] = []
    var hasEnded = false
    var hasFailed = false
    /// Nobody wants more.
    var isUnwanted = false
    var wake: (@Sendable () -> Void)?

    mutating func next() -> Next {
      if !bytes.isEmpty {
        defer { bytes = [] }
        return .bytes(bytes)
      }
      return hasFailed ? .failed : hasEnded ? .end : .nothing
    }

    mutating func takeWake() -> (@Sendable () -> Void)? {
      defer { wake = nil }
      return wake
    }
  }
  private let state = Monitor(State())
  private static let capacity = 128 << 10

  /// A feed without bytes.
  package init() {}

  /// Adds bytes, and waits while too many are there. Returns false if nobody wants them any more.
  package func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let isWanted = state.wait { state -> Bool? in
      if state.isUnwanted { return false }
      return state.bytes.count < Self.capacity ? true : nil
    }
    if !isWanted { return false }
    let wake = state.update { state in
      if !state.isUnwanted { state.bytes += bytes }
      return state.takeWake()
    }
    wake?()
    return true
  }

  /// Ends the feed. `isWhole`: all bytes have come.
  package func finish(isWhole: Bool) {
    let wake = state.update { state in
      (state.hasEnded, state.hasFailed) = (isWhole, !isWhole)
      return state.takeWake()
    }
    wake?()
  }

  /// Does not block.
  func next(orCall wake: @escaping @Sendable () -> Void) -> Next {
    state.update { state in
      let next = state.next()
      if case .nothing = next { state.wake = wake }
      return next
    }
  }

  /// Blocks until something has come. Never returns `.nothing`.
  package func waitForNext() -> Next {
    let next = state.wait { state -> Next? in
      let next = state.next()
      if case .nothing = next { return nil }
      return next
    }
    // There is room again, for which the other thread may wait.
    state.update { _ in }
    return next
  }

  /// All bytes; nil: they have not come. Blocks until then.
  package func all() -> [UInt8]? {
    var bytes: [UInt8] = []
    while true {
      switch waitForNext() {
      case .bytes(let more): bytes += more
      case .end: return bytes
      case .failed, .nothing: return nil
      }
    }
  }

  /// Ends the wait of the thread that brings the bytes. Does not block.
  package func stop() {
    state.update { state in (state.isUnwanted, state.bytes, state.wake) = (true, [], nil) }
  }
}

/// A file whose bytes another computer has.
package protocol RemoteContent: Sendable {
  /// Begins to bring the bytes of a range, which is not empty. Does not block. The feed fails if the file is not the version
  /// any more that was opened.
  func start(_ range: Range<Int64>) -> ContentFeed
}
