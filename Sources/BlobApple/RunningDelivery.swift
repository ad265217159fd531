import Blobs
import Platform
import Synchronization

/// A delivery that has begun. It is stopped when it is released.
final class RunningDelivery: Sendable {
  /// Whether a delivery makes progress. On any thread.
  final class Pulse: Sendable {
    /// How often the system has shown that it works on the delivery.
    let signs = Atomic(0)
    /// The first byte has come.
    let hasBegun = Atomic(false)
    /// A thread waits for the next piece.
    let isAwaited = Atomic(false)
    /// The delivery has ended, perhaps with an error.
    let hasEnded = Atomic(false)
    /// The delivery has ended with an error.
    let hasFailed = Atomic(false)

    func whileWaiting<Result>(_ body: () throws(BlobError) -> Result) throws(BlobError) -> Result {
      isAwaited.store(true, ordering: .relaxed)
      defer { isAwaited.store(false, ordering: .relaxed) }
      return try body()
    }
  }

  /// The delivered bytes, from the offset `start` of the resource on.
  let bytes: PipeSource
  let start: Int64
  /// The resource when the delivery began.
  let info: BlobInfo
  let pulse: Pulse
  /// Ends the delivery with an error for its reader, because the system does not go on with it.
  let giveUp: @Sendable () -> Void
  private let stop: @Sendable () -> Void

  init(
    _ bytes: PipeSource, from start: Int64, _ info: BlobInfo, _ pulse: Pulse,
    giveUp: @escaping @Sendable () -> Void, stop: @escaping @Sendable () -> Void
  ) {
    self.bytes = bytes
    self.start = start
    self.info = info
    self.pulse = pulse
    self.giveUp = giveUp
    self.stop = stop
  }

  deinit {
    pulse.hasEnded.store(true, ordering: .relaxed)
    stop()
  }
}

/// Takes what a `ByteDelivery` delivers. The closures that a delivery is given own it: a delivery that releases them before
/// its end has failed.
final class DeliveryInput: Sendable {
  let pulse = RunningDelivery.Pulse()
  private let pipe: BlobPipe
  private let start: Monitor<DeliveryStart>
  private let name: String

  init(_ pipe: BlobPipe, _ start: Monitor<DeliveryStart>, name: String) {
    self.pipe = pipe
    self.start = start
    self.name = name
  }

  deinit { end(BlobError(.invalidated, "read \(name): its delivery was given up before its end")) }

  /// Calls `ByteDelivery.start` on this thread, and gives `stop` what stops the delivery.
  func start(_ delivery: any ByteDelivery, _ stop: DeliveryStop) {
    stop.set(
      delivery.start {
        self.receive($0)
      } end: {
        self.end($0)
      })
    start.update { $0.isUnderWay = true }
  }

  /// Takes the next piece. Returns false when no reader wants it.
  func receive(_ piece: UnsafeRawBufferPointer) -> Bool {
    pulse.signs.add(1, ordering: .relaxed)
    if !piece.isEmpty { pulse.hasBegun.store(true, ordering: .relaxed) }
    let wanted = start.update { $0.skip(piece) }
    do throws(BlobError) {
      try pipe.write(wanted)
      return true
    } catch {
      // The reader is gone.
      return false
    }
  }

  func end(_ failure: BlobError?) {
    if pulse.hasEnded.exchange(true, ordering: .relaxed) { return }
    if failure != nil { pulse.hasFailed.store(true, ordering: .relaxed) }
    start.update { $0.end(failure) }
    if let failure { pipe.fail(failure) } else { pipe.finish() }
  }

  /// The system has given no sign for long that it works on the delivery.
  func giveUp() {
    end(BlobError(.invalidated, "read \(name): the system has delivered nothing for long, and no sign of a download"))
  }

  /// Lets a call of `receive` that waits for room return, because nobody will read any more.
  func close() { pipe.fail(BlobError(.io, "read \(name): its reader is gone")) }
}

/// Stops a delivery, also one whose start has not returned yet.
final class DeliveryStop: Sendable {
  private struct State {
    var stop: (@Sendable () -> Void)?
    var isStopped = false
  }
  private let state = Mutex(State())

  /// The delivery has started; `stop` stops it.
  func set(_ stop: @escaping @Sendable () -> Void) {
    let isStopped = state.withLock { state in
      if !state.isStopped { state.stop = stop }
      return state.isStopped
    }
    if isStopped { stop() }
  }

  func stop() {
    let stop = state.withLock { state in
      state.isStopped = true
      return state.stop.take()
    }
    stop?()
  }
}

/// How far a delivery is on its way to the offset at which the source was opened.
struct DeliveryStart {
  enum Position {
    /// So many bytes are still to be dropped.
    case skipping(Int64)
    case reached
    /// The end came so many bytes before the offset.
    case ended(missing: Int64)
    case failed(BlobError)
  }

  private(set) var position: Position
  /// The delivery has found its resource: it delivers, or its start has returned.
  var isUnderWay = false

  init(skipping count: Int64) { position = .skipping(count) }

  /// Counts the next piece, and returns its bytes from the offset on.
  mutating func skip(_ piece: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    // The call that starts the delivery may return only at the end.
    if !piece.isEmpty { isUnderWay = true }
    guard case .skipping(let left) = position else { return piece }
    let dropped = Int(min(left, Int64(piece.count)))
    position = left > Int64(dropped) ? .skipping(left - Int64(dropped)) : .reached
    return UnsafeRawBufferPointer(rebasing: piece.dropFirst(dropped))
  }

  mutating func end(_ failure: BlobError?) {
    isUnderWay = true
    guard case .skipping(let left) = position, left > 0 else { return }
    position = failure.map { .failed($0) } ?? .ended(missing: left)
  }
}
