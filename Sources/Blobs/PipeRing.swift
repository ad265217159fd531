/// The memory that both ends of a pipe share. Each end copies outside the lock: the free range belongs to the writer,
/// the filled range to the reader.
package final class PipeRing: @unchecked Sendable {
  // `state` says which range of `memory` belongs to which end. Each end asks `state` for its range before it copies.
  private let memory: UnsafeMutableRawBufferPointer
  private let state = Monitor(State())

  private struct State {
    /// Index of the first filled byte in `memory`.
    var start = 0
    var filled = 0
    /// Offset of the next byte to be read, counted from the first byte ever written.
    var position: Int64 = 0
    var hasEnded = false
    var failure: BlobError?
    var isRead = false
    var readerIsGone = false
    /// The reader's error, if it passed one when it went away.
    var complaint: BlobError?
    var writerCall: (call: Call, orRoom: Bool)?
    var readerCall: Call?

    /// Neither end needs to wait for bytes or room any more.
    var isOver: Bool { hasEnded || readerIsGone }
  }

  /// A callback that is called once, outside the lock, when an end need not wait any more.
  package typealias Call = @Sendable () -> Void

  package init(capacity: Int) {
    precondition(capacity > 0)
    memory = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { memory.deallocate() }

  /// Makes both waiting ends check their condition again.
  @Sendable package func wake() { change(.both) { _ in } }

  /// Changes the state and notifies the given ends.
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

  /// Contiguous free memory; nil when the pipe is full.
  package func room() throws(BlobError) -> UnsafeMutableRawBufferPointer? {
    try state.update(waking: .none) { state throws(BlobError) in try free(state) }.map(part)
  }

  /// Like `room`, but waits until there is room.
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

  /// Calls `call` once there will never be room again, or, with `orRoom`, once there is room: immediately, or on the
  /// thread that causes it. `wake` also calls it. Only one call can be registered at a time.
  package func whenWritable(orRoom: Bool = true, _ call: @escaping Call) {
    let isNow = state.update(waking: .none) { state in
      let isNow = orRoom && state.filled < memory.count || state.isOver
      // An earlier registration that waits for room must still be notified of room.
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
        // The task may have been cancelled before the callback was registered.
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

  /// Marks that no reader will read any more. The writer gets `complaint` as its error, if it is not nil.
  package func readerIsGone(_ complaint: BlobError? = nil) {
    change(.both) { state in
      if !state.readerIsGone { (state.readerIsGone, state.complaint) = (true, complaint) }
    }
  }

  /// Contiguous readable bytes; empty at the end, nil if there are none yet.
  package func bytes() throws(BlobError) -> UnsafeRawBufferPointer? {
    try state.update(waking: .none) { state throws(BlobError) in try filled(state) }.map {
      UnsafeRawBufferPointer(part($0))
    }
  }

  /// Like `bytes`, but waits until there are some or the end is reached.
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

  /// Calls `call` once there are bytes or never will be: immediately, or on the thread that causes it. `wake` also
  /// calls it. Only one call can be registered at a time.
  package func whenReadable(_ call: @escaping Call) {
    let isNow = state.update(waking: .none) { state in
      let isNow = state.filled > 0 || state.hasEnded
      if !isNow { state.readerCall = call }
      return isNow
    }
    if isNow { call() }
  }
}
