import Blobs

/// Where a run notes what must outlive it, so that the next one can go on.
///
/// The closures wait for nothing, and may be called on any thread; only `flush` waits, for the disk.
struct UploadLedger: Sendable {
  var opened: @Sendable (UploadSession) -> Void
  /// Bytes the server vouches for, from the beginning.
  var acknowledged: @Sendable (Int64) -> Void
  /// The server has lost it.
  var restarted: @Sendable () -> Void
  var recognized: @Sendable (Validator) -> Void
  /// A part of it is known at the server.
  var receipt: @Sendable (PartReceipt) -> Void
  /// Begins to keep what is sent from an offset on, summed under a key; nil: it is not kept.
  var sending: (@Sendable (Int64, [UInt8]) -> @Sendable (Int64, [UInt8]) -> Void)?
  /// What was noted is durable when it returns.
  var flush: @Sendable () async throws(UploadError) -> Void
}

extension UploadLedger {
  /// The journal's entry for an upload.
  init(_ journal: Journal, _ entry: Int64) {
    self.init(
      opened: { journal.opened(entry, $0) }, acknowledged: { journal.acknowledged(entry, $0) },
      restarted: { journal.restarted(entry) }, recognized: { journal.recognized(entry, $0) },
      receipt: { journal.receipt(entry, $0) },
      sending: { journal.sending(entry, from: $0, key: $1) },
      flush: { () async throws(UploadError) in try await journal.flushed() })
  }
}
