import Blobs
import Synchronization

/// Deliveries that no reader has at the moment. A later reader of the same source goes on with one, so that the bytes
/// before its offset are not delivered once more.
///
/// It also watches the deliveries that are being read. One that gives no sign for `mostSilence` ticks while a reader waits is
/// given up: its reader holds a thread, and the upload holds room that others could use.
///
/// The system may deliver all resources by one queue, which a kept delivery holds up, because nobody reads it. So it is
/// released when another delivery waits in vain for its first byte, and when it was not used for a minute, since requests
/// that the app itself makes are not seen here. Both times are counted in ticks: a process that was suspended has not waited.
final class KeptDeliveries: Sendable {
  static let shared = KeptDeliveries()

  /// As many as a `BackgroundUploader` has uploads at once. When there are more, the oldest is released.
  private static let most = 32
  /// The ticks for which a delivery may wait for its first byte before the kept ones are released.
  static let patience = 10
  /// The ticks after which a delivery without a sign is given up. A download from iCloud may show its progress seldom, and one
  /// that is given up may begin anew.
  private let mostSilence: Int
  /// The ticks for which a delivery is kept.
  static let mostAge = 60

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

  fileprivate struct Entry {
    var owner: ObjectIdentifier
    var value: Kept
    /// In ticks.
    var age = 0
  }
  /// A delivery that has not ended.
  fileprivate struct Watched {
    weak var pulse: RunningDelivery.Pulse?
    let giveUp: @Sendable () -> Void
    var signs = 0
    /// The ticks for which a thread has waited without a sign.
    var silence = 0

    var isStarved: Bool {
      silence > 0 && silence.isMultiple(of: KeptDeliveries.patience)
        && pulse?.hasBegun.load(ordering: .relaxed) == false
    }
  }
  fileprivate struct State {
    /// The oldest come first.
    var kept: [Entry] = []
    var watched: [Watched] = []
    var isTicking = false
  }
  private let state = Mutex(State())
  private let interval: Duration

  /// `interval` is that of the ticks.
  init(interval: Duration = .seconds(1), mostSilence: Int = 1800) {
    (self.interval, self.mostSilence) = (interval, mostSilence)
  }

  /// Releases all kept deliveries whenever a thread has waited for the first byte of this one for `patience` ticks, and the
  /// system has given no sign that it works on it. Gives this one up after `mostSilence` such ticks, also later.
  func watch(_ delivery: RunningDelivery) {
    state.withLock { $0.watched.append(Watched(pulse: delivery.pulse, giveUp: delivery.giveUp)) }
    startTicking()
  }

  private func startTicking() {
    let isTicking = state.withLock { state in
      defer { state.isTicking = true }
      return state.isTicking
    }
    if isTicking { return }
    // Unstructured, because readers block their threads meanwhile. It ends once there is nothing to count.
    Task { [weak self, interval] in
      repeat {
        // Nothing cancels this task.
        try? await Task.sleep(for: interval)
      } while self?.tick() == true
    }
  }

  /// Counts one tick. Returns false if there is nothing to count any more.
  func tick() -> Bool {
    let (released, silent, goesOn) = state.withLock { state in
      state.watched = state.watched.compactMap { $0.ticked() }
      let isStarved = state.watched.contains { $0.isStarved }
      let silent = state.watched.filter { $0.silence >= mostSilence }
      for index in state.kept.indices { state.kept[index].age += 1 }
      let released = state.take { isStarved || $0.age >= Self.mostAge }
      let pulses = released.map { ObjectIdentifier($0.delivery.pulse) }
      state.watched.removeAll { watched in watched.pulse.map { pulses.contains(ObjectIdentifier($0)) } ?? true }
      state.isTicking = !state.kept.isEmpty || !state.watched.isEmpty
      return (released, silent, state.isTicking)
    }
    // They are stopped outside the lock, because that calls foreign code.
    withExtendedLifetime(released) {}
    for watched in silent { watched.giveUp() }
    return goesOn
  }

  private func keep(_ value: Kept, _ owner: ObjectIdentifier) {
    let released = state.withLock { state in
      var released = state.take { $0.owner == owner }
      state.kept.append(Entry(owner: owner, value: value))
      if state.kept.count > Self.most { released.append(state.kept.removeFirst().value) }
      return released
    }
    withExtendedLifetime(released) {}
    startTicking()
  }

  @discardableResult
  private func release(_ isMeant: (Entry) -> Bool) -> [Kept] { state.withLock { $0.take(isMeant) } }
}

extension KeptDeliveries.State {
  fileprivate mutating func take(_ isMeant: (KeptDeliveries.Entry) -> Bool) -> [KeptDeliveries.Kept] {
    let taken = kept.filter(isMeant).map(\.value)
    kept.removeAll(where: isMeant)
    return taken
  }
}

extension KeptDeliveries.Watched {
  /// The same one tick later; nil: the delivery is over.
  fileprivate func ticked() -> Self? {
    guard let pulse, !pulse.hasEnded.load(ordering: .relaxed) else { return nil }
    var next = self
    next.signs = pulse.signs.load(ordering: .relaxed)
    next.silence = next.signs == signs && pulse.isAwaited.load(ordering: .relaxed) ? silence + 1 : 0
    return next
  }
}
