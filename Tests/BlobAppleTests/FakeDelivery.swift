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
    var begun = 0
    var end: (@Sendable (BlobError?) -> Void)?
  }
  let pattern: PatternSource
  let pieceSize: Int
  let failure: (at: Int64, error: BlobError)?
  /// Delivers nothing and never ends by itself.
  let isStalled: Bool
  let state: Mutex<State>

  init(
    _ pattern: PatternSource, pieceSize: Int = 64 << 10, told length: Int64? = nil, isStalled: Bool = false,
    failure: (at: Int64, error: BlobError)? = nil
  ) {
    self.pattern = pattern
    self.pieceSize = pieceSize
    self.failure = failure
    self.isStalled = isStalled
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
      state.end = end
      state.begun += 1
      return state.begun
    }
    if !isStalled { SystemThread.start("delivery") { [self] in deliver(number, receive, end) } }
    return { [self] in state.withLock { _ = $0.stopped.insert(number) } }
  }

  private func deliver(
    _ number: Int, _ receive: (UnsafeRawBufferPointer) -> Bool, _ end: (BlobError?) -> Void
  ) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceSize, alignment: 16)
    defer { buffer.deallocate() }
    let last = min(failure?.at ?? .max, pattern.length)
    var offset: Int64 = 0
    while offset < last {
      let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(min(Int64(pieceSize), last - offset))])
      pattern.fill(piece, at: offset)
      state.withLock { $0.pieces += 1 }
      if !receive(UnsafeRawBufferPointer(piece)) || state.withLock({ $0.stopped.contains(number) }) { return }
      offset += Int64(piece.count)
    }
    end(failure?.error)
  }
}
