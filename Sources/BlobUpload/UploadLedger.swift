import Blobs

/// Where a run notes what must outlive it, so that the next one can go on.
///
/// Nothing waits, and any thread may call; only `flush` waits, for the disk.
protocol UploadLedger: AnyObject, Sendable {
  func opened(_ session: UploadSession)
  /// Bytes the server vouches for, from the beginning.
  func acknowledged(_ offset: Int64)
  /// The server has lost it.
  func restarted()
  /// As `restarted`, and the server may still have it: what is to be deleted there stays known.
  func abandoned()
  func recognized(_ validator: Validator)
  /// A part of it is known at the server.
  func receipt(_ receipt: PartReceipt)
  /// Begins to keep what is sent from an offset on, summed under a key; nil: it is not kept.
  func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)?
  /// What was noted is durable when it returns.
  func flush() async throws(UploadError)
}

/// The journal's entry for an upload.
final class JournalLedger: UploadLedger {
  private let journal: Journal
  private let entry: Int64

  init(_ journal: Journal, _ entry: Int64) {
    self.journal = journal
    self.entry = entry
  }

  func opened(_ session: UploadSession) { journal.opened(entry, session) }
  func acknowledged(_ offset: Int64) { journal.acknowledged(entry, offset) }
  func restarted() { journal.restarted(entry) }
  func abandoned() { journal.abandoned(entry) }
  func recognized(_ validator: Validator) { journal.recognized(entry, validator) }
  func receipt(_ receipt: PartReceipt) { journal.receipt(entry, receipt) }
  func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)? {
    journal.sending(entry, from: start, key: key)
  }
  func flush() async throws(UploadError) { try await journal.flushed() }
}
