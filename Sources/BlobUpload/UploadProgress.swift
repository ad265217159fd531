import Synchronization

/// The progress of one upload. Callers poll it; it calls nothing.
///
/// Offsets come from servers. Sums wrap around, because `Atomic.add` would end the process on overflow, and what is
/// added is subtracted again.
public final class UploadProgress: Sendable {
  private let sentBytes = Atomic<Int64>(0)
  private let acknowledgedBytes = Atomic<Int64>(0)
  private let resumedAt = Atomic<Int64>(0)
  private let isMoved = Atomic<Bool>(false)
  private let totals: UploadTotals?
  /// The progress of the whole file if this is one of its parts: all changes apply there too.
  private let whole: UploadProgress?

  /// All changes are added to `totals` as well.
  public init(totals: UploadTotals? = nil) {
    self.totals = totals
    whole = nil
  }

  /// The progress of a part; its offsets count from the part's first byte.
  init(partOf whole: UploadProgress) {
    totals = whole.totals
    self.whole = whole
  }

  /// Offset of the next byte to hand to the connection; it decreases when an attempt is repeated.
  public var sent: Int64 { sentBytes.load(ordering: .relaxed) }
  /// Bytes from the start that the server has confirmed.
  public var acknowledged: Int64 { acknowledgedBytes.load(ordering: .relaxed) }
  /// Offset from which an upload of an earlier run was resumed; 0 for a new one.
  public var resumed: Int64 { resumedAt.load(ordering: .relaxed) }

  /// Bytes were handed to a connection, whether or not they have arrived.
  var hasSent: Bool { isMoved.load(ordering: .relaxed) }

  /// `count` is negative if this many bytes are about to be sent again.
  func advance(by count: Int64) {
    sentBytes.wrappingAdd(count, ordering: .relaxed)
    whole?.sentBytes.wrappingAdd(count, ordering: .relaxed)
    if count > 0, !isMoved.load(ordering: .relaxed) { isMoved.store(true, ordering: .relaxed) }
    if count > 0 { totals?.sentBytes.wrappingAdd(count, ordering: .relaxed) }
  }

  /// The server has all bytes before `offset`; sending continues from there.
  func settle(at offset: Int64) {
    let before = set(sent: offset, acknowledged: offset)
    totals?.acknowledgedBytes.wrappingAdd(offset &- before, ordering: .relaxed)
  }

  /// The server has received `count` more bytes, at any offset; `sent`: how many of them were already counted as sent.
  func acknowledge(_ count: Int64, sent: Int64) {
    sentBytes.wrappingAdd(count &- sent, ordering: .relaxed)
    whole?.sentBytes.wrappingAdd(count &- sent, ordering: .relaxed)
    acknowledgedBytes.wrappingAdd(count, ordering: .relaxed)
    whole?.acknowledgedBytes.wrappingAdd(count, ordering: .relaxed)
    totals?.acknowledgedBytes.wrappingAdd(count, ordering: .relaxed)
  }

  /// The server has nothing any more, including the bytes of an earlier run.
  func restart() {
    let ours = set(sent: 0, acknowledged: 0) &- setResumed(0)
    totals?.acknowledgedBytes.wrappingSubtract(ours, ordering: .relaxed)
  }

  /// An earlier run has sent the bytes before `offset`, so they do not count in this run's totals.
  func resume(at offset: Int64) {
    _ = setResumed(offset)
    _ = set(sent: offset, acknowledged: offset)
  }

  /// Returns the previous value of `acknowledged`.
  private func set(sent: Int64, acknowledged: Int64) -> Int64 {
    let sentBefore = sentBytes.exchange(sent, ordering: .relaxed)
    let before = acknowledgedBytes.exchange(acknowledged, ordering: .relaxed)
    whole?.sentBytes.wrappingAdd(sent &- sentBefore, ordering: .relaxed)
    whole?.acknowledgedBytes.wrappingAdd(acknowledged &- before, ordering: .relaxed)
    return before
  }

  /// Returns the previous value.
  private func setResumed(_ offset: Int64) -> Int64 {
    let before = resumedAt.exchange(offset, ordering: .relaxed)
    whole?.resumedAt.wrappingAdd(offset &- before, ordering: .relaxed)
    return before
  }
}

/// Totals over all uploads of a run.
public final class UploadTotals: Sendable {
  fileprivate let sentBytes = Atomic<Int64>(0)
  fileprivate let acknowledgedBytes = Atomic<Int64>(0)

  /// Creates totals of 0.
  public init() {}

  /// Bytes handed to connections; bytes sent twice count twice.
  public var sent: Int64 { sentBytes.load(ordering: .relaxed) }
  /// Bytes that the server has confirmed.
  public var acknowledged: Int64 { acknowledgedBytes.load(ordering: .relaxed) }
}
