/// The memory both ends of a pipe share. Each end copies outside the lock: the free part is the writer's, the filled the
/// reader's.
package final class PipeRing: @unchecked Sendable {
  // `state` says which part of `memory` belongs to whom, and whoever copies has asked it.
  private let memory: UnsafeMutableRawBufferPointer
  private let state = Monitor(State())

  private struct State {
    /// Index of the first filled byte.
    var start = 0
    var filled = 0
    /// Offset of the next byte to be read, from the first ever written.
    var position: Int64 = 0
    var hasEnded = false
    var failure: BlobError?
    var isRead = false
    var readerIsGone = false
    /// Why the reader went away, where it said so.
    var complaint: BlobError?
    var writerCall: (call: Call, orRoom: Bool)?
    var readerCall: Call?

    /// Neither end need look for bytes or room any more.
    var isOver: Bool { hasEnded || readerIsGone }
  }

  /// What is called once, outside the lock, when an end need not wait any more.
  package typealias Call = @Sendable () -> Void

  package init(capacity: Int) {
    precondition(capacity > 0)
    memory = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { memory.deallocate() }

  /// Lets whoever waits look again.
  @Sendable package func wake() { change(.both) { _ in } }

  /// Changes what is news to one end or both, and tells them.
  private func change(_ ends: Ends, _ body: (inout State) -> Void) {
    let (writer, reader) = state.update { state in
      body(&state)
      var calls: (writer: Call?, reader: Call?)
      if ends.contains(.reader) { swap(&calls.reader, &state.readerCall) }
      if ends.contains(.writer), let waiting = state.writerCall, waiting.orRoom || state.isOver || ends == .both {
        (calls.writer, state.writerCall) = (waiting.call, nil)
      }
      return calls
    }
    writer?()
    reader?()
  }

  private struct Ends: OptionSet {
    let rawValue: Int
    static let writer = Ends(rawValue: 1)
    static let reader = Ends(rawValue: 2)
    static let both: Ends = [.writer, .reader]
  }

  // MARK: The writer's side

  /// Free memory, in one piece; nil when the pipe is full.
  package func room() throws(BlobError) -> UnsafeMutableRawBufferPointer? {
    try state.update(waking: .none) { state throws(BlobError) in try free(state) }.map(part)
  }

  /// As `room`, and waits for it.
  package func waitForRoom(_ cancel: Cancellation?) throws(BlobError) -> UnsafeMutableRawBufferPointer {
    part(
      try state.wait { state throws(BlobError) in
        try cancel?.check("write to a pipe")
        return try free(state)
      })
  }

  private func free(_ state: State) throws(BlobError) -> Range<Int>? {
    if state.hasEnded { throw state.failure ?? BlobError(.io, "write to a pipe: it was finished before") }
    if state.readerIsGone {
      throw state.complaint ?? BlobError(.io, "write to a pipe: its reader stopped at byte \(state.position)")
    }
    if state.filled == memory.count { return nil }
    let first = (state.start + state.filled) % memory.count
    return first..<min(first + memory.count - state.filled, memory.count)
  }

  private func part(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: memory[range])
  }

  package func wrote(_ count: Int) { change(.reader) { $0.filled += count } }

  package func end(_ failure: BlobError?) {
    change(.both) { state in
      if state.hasEnded { return }
      state.hasEnded = true
      state.failure = failure
    }
  }

  /// Calls `call` once there will never be room, or, with `orRoom`, once there is: at once, or on the thread that brings it
  /// about. Also when `wake` is called. One call at a time.
  package func whenWritable(orRoom: Bool = true, _ call: @escaping Call) {
    let isNow = state.update(waking: .none) { state in
      let isNow = orRoom && state.filled < memory.count || state.isOver
      // Whoever waited for room since this was asked for still does.
      if !isNow { state.writerCall = (call, orRoom || state.writerCall?.orRoom == true) }
      return isNow
    }
    if isNow { call() }
  }

  /// Suspends until the writer need not wait, or the task is cancelled.
  func writable() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        whenWritable { continuation.resume() }
        // Cancelled before there was a call to wake.
        if Task.isCancelled { wake() }
      }
    } onCancel: {
      wake()
    }
  }

  // MARK: The reader's side

  func open(at offset: Int64) throws(BlobError) {
    try state.update { state throws(BlobError) in
      if state.isRead { throw BlobError(.unsupported, "open a pipe: another reader is at it") }
      if offset != state.position {
        throw BlobError(.outOfRange, "open a pipe at byte \(offset): it is at \(state.position)")
      }
      state.isRead = true
    }
  }

  func closed() { state.update(waking: .none) { $0.isRead = false } }

  /// Nobody will read any more. `complaint` is what the writer gets to see, where it is given.
  package func readerIsGone(_ complaint: BlobError? = nil) {
    change(.both) { state in
      if !state.readerIsGone { (state.readerIsGone, state.complaint) = (true, complaint) }
    }
  }

  /// Bytes, in one piece; none mean the end, nil that there are none yet.
  package func bytes() throws(BlobError) -> UnsafeRawBufferPointer? {
    try state.update(waking: .none) { state throws(BlobError) in try filled(state) }.map {
      UnsafeRawBufferPointer(part($0))
    }
  }

  /// As `bytes`, and waits for them.
  package func waitForBytes(_ cancels: Cancellation...) throws(BlobError) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      part(
        try state.wait { state throws(BlobError) in
          for cancel in cancels { try cancel.check("read from a pipe") }
          return try filled(state)
        }))
  }

  private func filled(_ state: State) throws(BlobError) -> Range<Int>? {
    if state.filled > 0 { return state.start..<min(state.start + state.filled, memory.count) }
    if let failure = state.failure { throw failure }
    return state.hasEnded ? 0..<0 : nil
  }

  package func took(_ count: Int) {
    change(.writer) { state in
      state.start = (state.start + count) % memory.count
      state.filled -= count
      state.position += Int64(count)
    }
  }

  /// Calls `call` once there are bytes or never will be: at once, or on the thread that brings it about. Also when `wake`
  /// is called. One call at a time.
  package func whenReadable(_ call: @escaping Call) {
    let isNow = state.update(waking: .none) { state in
      let isNow = state.filled > 0 || state.hasEnded
      if !isNow { state.readerCall = call }
      return isNow
    }
    if isNow { call() }
  }
}
