import Synchronization

/// How far one upload is. Whoever shows it samples it; nothing is called.
///
/// Offsets come from servers. Sums wrap around, since `Atomic.add` would end the process where one is too large, and what
/// is added is subtracted again.
public final class Progress: Sendable {
  private let sentBytes = Atomic<Int64>(0)
  private let acknowledgedBytes = Atomic<Int64>(0)
  private let resumedAt = Atomic<Int64>(0)
  private let isMoved = Atomic<Bool>(false)
  private let totals: UploadTotals?
  /// What this is a part of: what happens here, happens there.
  private let whole: Progress?

  /// What happens here is added to `totals` as well.
  public init(totals: UploadTotals? = nil) {
    self.totals = totals
    whole = nil
  }

  /// Of a part; its offsets count from the part's first byte.
  init(partOf whole: Progress) {
    totals = whole.totals
    self.whole = whole
  }

  /// Offset of the next byte to be handed to the connection; falls back when an attempt is repeated.
  public var sent: Int64 { sentBytes.load(ordering: .relaxed) }
  /// Bytes from the start that the server vouches for.
  public var acknowledged: Int64 { acknowledgedBytes.load(ordering: .relaxed) }
  /// Where an upload that an earlier run had begun goes on; 0 for a new one.
  public var resumed: Int64 { resumedAt.load(ordering: .relaxed) }

  /// Bytes were handed to a connection, whatever became of them.
  var hasSent: Bool { isMoved.load(ordering: .relaxed) }

  /// `count` is below 0 where as many bytes are about to be sent again.
  func advance(by count: Int64) {
    sentBytes.wrappingAdd(count, ordering: .relaxed)
    whole?.sentBytes.wrappingAdd(count, ordering: .relaxed)
    if count > 0, !isMoved.load(ordering: .relaxed) { isMoved.store(true, ordering: .relaxed) }
    if count > 0 { totals?.sentBytes.wrappingAdd(count, ordering: .relaxed) }
  }

  /// The server holds everything before `offset`: sending goes on from there.
  func settle(at offset: Int64) {
    let before = set(sent: offset, acknowledged: offset)
    totals?.acknowledgedBytes.wrappingAdd(offset &- before, ordering: .relaxed)
  }

  /// The server holds `count` bytes more, somewhere; `sent`: what was counted as sent of them.
  func acknowledge(_ count: Int64, sent: Int64) {
    sentBytes.wrappingAdd(count &- sent, ordering: .relaxed)
    whole?.sentBytes.wrappingAdd(count &- sent, ordering: .relaxed)
    acknowledgedBytes.wrappingAdd(count, ordering: .relaxed)
    whole?.acknowledgedBytes.wrappingAdd(count, ordering: .relaxed)
    totals?.acknowledgedBytes.wrappingAdd(count, ordering: .relaxed)
  }

  /// The server has nothing any more, also of what an earlier run had brought.
  func restart() {
    let ours = set(sent: 0, acknowledged: 0) &- setResumed(0)
    totals?.acknowledgedBytes.wrappingSubtract(ours, ordering: .relaxed)
  }

  /// An earlier run brought it up to `offset`: not this run's doing, so not in its totals.
  func resume(at offset: Int64) {
    _ = setResumed(offset)
    _ = set(sent: offset, acknowledged: offset)
  }

  /// Returns what was acknowledged before.
  private func set(sent: Int64, acknowledged: Int64) -> Int64 {
    let sentBefore = sentBytes.exchange(sent, ordering: .relaxed)
    let before = acknowledgedBytes.exchange(acknowledged, ordering: .relaxed)
    whole?.sentBytes.wrappingAdd(sent &- sentBefore, ordering: .relaxed)
    whole?.acknowledgedBytes.wrappingAdd(acknowledged &- before, ordering: .relaxed)
    return before
  }

  /// Returns what it was before.
  private func setResumed(_ offset: Int64) -> Int64 {
    let before = resumedAt.exchange(offset, ordering: .relaxed)
    whole?.resumedAt.wrappingAdd(offset &- before, ordering: .relaxed)
    return before
  }
}

/// What all uploads of a run amount to.
public final class UploadTotals: Sendable {
  fileprivate let sentBytes = Atomic<Int64>(0)
  fileprivate let acknowledgedBytes = Atomic<Int64>(0)

  public init() {}

  /// Bytes handed to connections; what is sent twice counts twice.
  public var sent: Int64 { sentBytes.load(ordering: .relaxed) }
  /// Bytes the server came to vouch for.
  public var acknowledged: Int64 { acknowledgedBytes.load(ordering: .relaxed) }
}
