import Synchronization

/// How far one upload is. Whoever shows it samples it; nothing is called.
public final class Progress: Sendable {
  private let sentBytes = Atomic<Int64>(0)
  private let acknowledgedBytes = Atomic<Int64>(0)
  private let resumedAt = Atomic<Int64>(0)
  private let totals: UploadTotals?

  /// What happens here is added to `totals` as well.
  public init(totals: UploadTotals? = nil) { self.totals = totals }

  /// Offset of the next byte to be handed to the connection; falls back when an attempt is repeated.
  public var sent: Int64 { sentBytes.load(ordering: .relaxed) }
  /// Bytes from the start that the server vouches for.
  public var acknowledged: Int64 { acknowledgedBytes.load(ordering: .relaxed) }
  /// Where an upload that an earlier run had begun goes on; 0 for a new one.
  public var resumed: Int64 { resumedAt.load(ordering: .relaxed) }

  /// `count` is below 0 where as many bytes are about to be sent again.
  func advance(by count: Int64) {
    sentBytes.add(count, ordering: .relaxed)
    if count > 0 { totals?.sentBytes.add(count, ordering: .relaxed) }
  }

  /// The server holds everything before `offset`: sending goes on from there.
  func settle(at offset: Int64) {
    sentBytes.store(offset, ordering: .relaxed)
    let before = acknowledgedBytes.exchange(offset, ordering: .relaxed)
    totals?.acknowledgedBytes.add(offset - before, ordering: .relaxed)
  }

  /// The server holds `count` bytes more, somewhere; `sent`: what was counted as sent of them.
  func acknowledge(_ count: Int64, sent: Int64) {
    sentBytes.add(count - sent, ordering: .relaxed)
    acknowledgedBytes.add(count, ordering: .relaxed)
    totals?.acknowledgedBytes.add(count, ordering: .relaxed)
  }

  /// The server has nothing any more, also of what an earlier run had brought.
  func restart() {
    sentBytes.store(0, ordering: .relaxed)
    let ours = acknowledgedBytes.exchange(0, ordering: .relaxed) - resumedAt.exchange(0, ordering: .relaxed)
    totals?.acknowledgedBytes.subtract(ours, ordering: .relaxed)
  }

  /// An earlier run brought it up to `offset`: not this run's doing, so not in its totals.
  func resume(at offset: Int64) {
    resumedAt.store(offset, ordering: .relaxed)
    sentBytes.store(offset, ordering: .relaxed)
    acknowledgedBytes.store(offset, ordering: .relaxed)
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
