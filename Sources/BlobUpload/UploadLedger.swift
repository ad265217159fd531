import Blobs

/// Records the state of an upload that a later run needs to resume it.
///
/// All methods may be called on any thread and do not block, except for `flush`, which waits for the disk.
protocol UploadLedger: AnyObject, Sendable {
  /// The number of the upload's entry in the journal; nil: there is no journal.
  var entry: Int64? { get }
  func opened(_ session: UploadSession)
  /// The server has confirmed all bytes before `offset`.
  func acknowledged(_ offset: Int64)
  /// The server has lost the upload.
  func restarted()
  /// Like `restarted`, but the server may still have the upload: it stays recorded so that it can be deleted later.
  func abandoned()
  func recognized(_ validator: Validator)
  /// The server has a part of the upload.
  func receipt(_ receipt: PartReceipt)
  /// Starts a record of the bytes sent from an offset on, with checksums under `key`. nil: nothing is recorded.
  func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)?
  /// Everything recorded before is durable when the call returns.
  func flush() async throws(UploadError)
}

/// The journal's entry for an upload.
final class JournalLedger: UploadLedger {
  private let journal: Journal
  private let id: Int64
  var entry: Int64? { id }

  init(_ journal: Journal, _ entry: Int64) { (self.journal, id) = (journal, entry) }

  func opened(_ session: UploadSession) { journal.opened(id, session) }
  func acknowledged(_ offset: Int64) { journal.acknowledged(id, offset) }
  func restarted() { journal.restarted(id) }
  func abandoned() { journal.abandoned(id) }
  func recognized(_ validator: Validator) { journal.recognized(id, validator) }
  func receipt(_ receipt: PartReceipt) { journal.receipt(id, receipt) }
  func sending(from start: Int64, key: [UInt8]) -> (@Sendable (Int64, [UInt8]) -> Void)? {
    journal.sending(id, from: start, key: key)
  }
  func flush() async throws(UploadError) { try await journal.flushed() }
}
