import BlobTesting
import Blobs
import Platform
import Synchronization

@testable import BlobApple

/// Delivers a pattern as PhotoKit delivers a resource: from the first byte on, in pieces, on a thread of its own, as fast as
/// the receiver takes them.
final class FakeDelivery: ByteDelivery {
  struct State {
    var info: BlobInfo
    var pieces = 0
    /// Of the deliveries that were begun, those that were stopped.
    var stopped: Set<Int> = []
    /// Deliveries whose receiver has everything.
    var ended: Set<Int> = []
    var begun = 0
    var receive: (@Sendable (UnsafeRawBufferPointer) -> Bool)?
    var end: (@Sendable (BlobError?) -> Void)?
    /// The calls of `receive` that have not returned.
    var running = 0
    /// A delivery was stopped while a call of `receive` did not return.
    var wasStuck = false
  }
  let pattern: PatternSource
  let pieceSize: Int
  let failure: (at: Int64, error: BlobError)?
  /// Delivers nothing and never ends by itself.
  let isStalled: Bool
  /// Delivers nothing after this byte, and never ends by itself.
  let stall: Int64
  /// Releases its closures without calling one.
  let givesUp: Bool
  /// Is edited between the look at it and the start of its delivery.
  let isEditedAtStart: Bool
  /// How `start` behaves.
  enum Start: Sendable {
    /// It returns at once, and another thread delivers.
    case returns
    /// It delivers itself, and returns when the receiver has everything.
    case delivers
    /// Another thread delivers, and it returns when the receiver has everything.
    case waits
  }
  let mode: Start
  let state: Mutex<State>

  init(
    _ pattern: PatternSource, pieceSize: Int = 64 << 10, told length: Int64? = nil, isStalled: Bool = false,
    stallsAt stall: Int64 = .max, givesUp: Bool = false, isEditedAtStart: Bool = false,
    mode: Start = .returns, failure: (at: Int64, error: BlobError)? = nil
  ) {
    self.pattern = pattern
    self.pieceSize = pieceSize
    self.failure = failure
    self.isStalled = isStalled
    self.stall = stall
    self.givesUp = givesUp
    self.isEditedAtStart = isEditedAtStart
    self.mode = mode
    state = Mutex(State(info: BlobInfo(length: length, validator: Validator(version: "1"))))
  }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { state.withLock { $0.info } }

  /// The asset is edited: readers are told, and another version is there from now on.
  func edit() {
    let end = state.withLock { state in
      state.info.validator = Validator(version: "2")
      return state.end
    }
    end?(BlobError(.changed, "read a photo: it was edited or deleted meanwhile"))
  }

  func start(
    receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Bool, end: @escaping @Sendable (BlobError?) -> Void
  ) -> @Sendable () -> Void {
    let number = state.withLock { state in
      state.begun += 1
      if isEditedAtStart { state.info.validator = Validator(version: "2") }
      if !givesUp { (state.receive, state.end) = (receive, end) }
      return state.begun
    }
    if mode == .delivers {
      deliver(number, receive, end)
    } else if !isStalled, !givesUp {
      SystemThread.start("delivery") { [self] in
        deliver(number, receive, end)
        state.withLock { _ = $0.ended.insert(number) }
      }
      while mode == .waits, state.withLock({ !$0.ended.contains(number) }) { usleep(1000) }
    }
    return { [self] in
      state.withLock { _ = $0.stopped.insert(number) }
      // As PhotoKit may do it.
      for _ in 0..<2000 where state.withLock({ $0.running > 0 }) { usleep(1000) }
      state.withLock { $0.wasStuck = $0.wasStuck || $0.running > 0 }
    }
  }

  /// Says that the delivery is being worked on.
  func giveSign() { _ = state.withLock { $0.receive }?(UnsafeRawBufferPointer(start: nil, count: 0)) }

  private func deliver(
    _ number: Int, _ receive: (UnsafeRawBufferPointer) -> Bool, _ end: (BlobError?) -> Void
  ) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceSize, alignment: 16)
    defer { buffer.deallocate() }
    let last = min(failure?.at ?? .max, pattern.length)
    var offset: Int64 = 0
    while offset < last {
      if offset >= stall { return }
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(pieceSize), last - offset))])
      pattern.fill(piece, at: offset)
      state.withLock { state in
        state.pieces += 1
        state.running += 1
      }
      let goesOn = receive(UnsafeRawBufferPointer(piece))
      state.withLock { $0.running -= 1 }
      if !goesOn || state.withLock({ $0.stopped.contains(number) }) { return }
      offset += Int64(piece.count)
    }
    end(failure?.error)
  }
}
