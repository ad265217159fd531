import Blobs
import Synchronization

/// A delivery that has begun. It is stopped when it is released.
final class RunningDelivery: Sendable {
  /// Whether a delivery makes progress. On any thread.
  final class Pulse: Sendable {
    /// The pieces that have come.
    let pieces = Atomic(0)
    /// A thread waits for the next piece.
    let isAwaited = Atomic(false)
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
  private let stop: @Sendable () -> Void

  init(
    _ bytes: PipeSource, from start: Int64, _ info: BlobInfo, _ pulse: Pulse, stop: @escaping @Sendable () -> Void
  ) {
    self.bytes = bytes
    self.start = start
    self.info = info
    self.pulse = pulse
    self.stop = stop
  }

  deinit { stop() }
}

/// Deliveries that no reader has at the moment. A later reader of the same source goes on with one, so that the bytes
/// before its offset are not delivered once more.
final class KeptDeliveries: Sendable {
  static let shared = KeptDeliveries()

  /// As many as a `BackgroundUploader` has uploads at once. When there are more, the oldest is released.
  private static let most = 32

  struct Kept {
    var delivery: RunningDelivery
    /// The next byte that comes out of `delivery.bytes`.
    var offset: Int64
    /// The bytes before `offset` that a reader can get again.
    var before: [UInt8] = []

    var offsets: ClosedRange<Int64> { offset - Int64(before.count)...offset }
  }

  /// Owned by a source and its readers. What is kept for them is released with it.
  final class Owner: Sendable {
    fileprivate let deliveries: KeptDeliveries

    init(_ deliveries: KeptDeliveries) { self.deliveries = deliveries }

    deinit { release() }

    func release() { _ = deliveries.release { $0.owner == ObjectIdentifier(self) } }

    /// Keeps a delivery for the next reader, instead of the one that was kept before.
    func keep(_ kept: Kept) {
      deliveries.keep(kept, ObjectIdentifier(self))
    }

    /// Takes the kept delivery. nil: there is none from which `offset` of this version can be read, or it has failed
    /// meanwhile; what was kept is released.
    func take(at offset: Int64, _ info: BlobInfo) -> Kept? {
      let kept = deliveries.release { $0.owner == ObjectIdentifier(self) }.first
      guard var kept, kept.offsets.contains(offset), kept.delivery.info.validator == info.validator,
        kept.delivery.info.length == info.length, !kept.delivery.pulse.hasFailed.load(ordering: .relaxed)
      else { return nil }
      kept.before.removeFirst(Int(offset - kept.offsets.lowerBound))
      return kept
    }
  }

  private let kept = Mutex<[(owner: ObjectIdentifier, value: Kept)]>([])
  private let patience: Duration

  /// `patience`: how long a delivery may wait for a piece before the kept ones are released.
  init(patience: Duration = .seconds(10)) { self.patience = patience }

  /// Releases all kept deliveries whenever this one, while a thread waits for it, has not brought a piece for `patience`:
  /// the system may deliver all resources by one queue, where a kept delivery, which is not read, holds up the others.
  func makeRoom(for delivery: RunningDelivery) {
    // Unstructured, because the reader's thread blocks meanwhile. It ends after the delivery was released.
    Task { [weak delivery, patience] in
      var last = 0
      while true {
        // Nothing cancels this task.
        try? await Task.sleep(for: patience)
        guard let pulse = delivery?.pulse else { return }
        let pieces = pulse.pieces.load(ordering: .relaxed)
        if pieces == last, pulse.isAwaited.load(ordering: .relaxed) { release { _ in true } }
        last = pieces
      }
    }
  }

  private func keep(_ value: Kept, _ owner: ObjectIdentifier) {
    let released = kept.withLock { kept in
      var released = kept.filter { $0.owner == owner }
      kept.removeAll { $0.owner == owner }
      kept.append((owner, value))
      if kept.count > Self.most { released.append(kept.removeFirst()) }
      return released
    }
    // They are stopped outside the lock, because that calls foreign code.
    withExtendedLifetime(released) {}
  }

  @discardableResult
  private func release(_ isMeant: ((owner: ObjectIdentifier, value: Kept)) -> Bool) -> [Kept] {
    kept.withLock { kept in
      let released = kept.filter(isMeant).map(\.value)
      kept.removeAll(where: isMeant)
      return released
    }
  }
}
