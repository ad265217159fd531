/// A bounded pipe from a thread that has bytes to one that wants them: for cameras, encoders, whatever pushes.
///
/// This is the writing end, for one writer at a time; `PipeSource` is the reading end. The bound is the backpressure:
/// no more than `capacity` bytes are ever held. Dropping the pipe without `finish()` is a failure to the reader.
public final class BlobPipe: Sendable {
  let ring: PipeRing

  public init(capacity: Int = 256 << 10) { ring = PipeRing(capacity: capacity) }

  deinit { fail(BlobError(.io, "the pipe's writer went away before it was done")) }

  /// Hands over all of `bytes`, blocking while the pipe is full: not for a cooperative thread.
  /// Throws `.cancelled`, `.io` once nobody can read any more, or what another thread said in `fail`; some of `bytes`
  /// may have gone through.
  public func write(_ bytes: UnsafeRawBufferPointer, _ cancel: Cancellation? = nil) throws(BlobError) {
    if let cancel {
      return try cancel.whileWaiting(wakeUp: ring.wake) { () throws(BlobError) in try put(bytes, cancel) }
    }
    try put(bytes, nil)
  }

  private func put(_ bytes: UnsafeRawBufferPointer, _ cancel: Cancellation?) throws(BlobError) {
    var rest = bytes
    while !rest.isEmpty {
      let room = try ring.room(cancel)
      let count = min(room.count, rest.count)
      room.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
      ring.wrote(count)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
  }

  /// The last byte has been written. What is still held will be read, then the end.
  public func finish() { ring.end(nil) }

  /// There will be no more bytes: the reader gets those still held, then `error`. Nothing after `finish()`.
  public func fail(_ error: BlobError) { ring.end(error) }
}

/// The memory both ends share. Each end copies outside the lock: the free part is the writer's, the filled the reader's.
final class PipeRing: @unchecked Sendable {
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
  }

  init(capacity: Int) {
    precondition(capacity > 0)
    memory = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit { memory.deallocate() }

  @Sendable func wake() { state.update { _ in } }

  // MARK: The writer's side

  /// Waits for free memory; all of it is in one piece.
  func room(_ cancel: Cancellation?) throws(BlobError) -> UnsafeMutableRawBufferPointer {
    let capacity = memory.count
    let free = try state.wait { state throws(BlobError) -> Range<Int>? in
      try cancel?.check("write to a pipe")
      if state.hasEnded { throw state.failure ?? BlobError(.io, "write to a pipe: it was finished before") }
      if state.readerIsGone {
        throw BlobError(.io, "write to a pipe: its reader stopped at byte \(state.position)")
      }
      if state.filled == capacity { return nil }
      let first = (state.start + state.filled) % capacity
      return first..<min(first + capacity - state.filled, capacity)
    }
    return UnsafeMutableRawBufferPointer(rebasing: memory[free])
  }

  func wrote(_ count: Int) { state.update { $0.filled += count } }

  func end(_ failure: BlobError?) {
    state.update { state in
      if state.hasEnded { return }
      state.hasEnded = true
      state.failure = failure
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

  func closed() { state.update { $0.isRead = false } }

  func readerIsGone() { state.update { $0.readerIsGone = true } }

  /// Waits for bytes; all of those given are in one piece, none means the end.
  func bytes(_ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
    let capacity = memory.count
    let filled = try state.wait { state throws(BlobError) -> Range<Int>? in
      try cancel.check("read from a pipe")
      if state.filled > 0 { return state.start..<min(state.start + state.filled, capacity) }
      if let failure = state.failure { throw failure }
      return state.hasEnded ? 0..<0 : nil
    }
    return UnsafeRawBufferPointer(rebasing: memory[filled])
  }

  func took(_ count: Int) {
    state.update { state in
      state.start = (state.start + count) % memory.count
      state.filled -= count
      state.position += Int64(count)
    }
  }
}
