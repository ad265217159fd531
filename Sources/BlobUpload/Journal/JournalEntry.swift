import Blobs

/// An upload that is about to start. Stored durably before its first byte is sent.
public struct JournalIntent: Sendable, Hashable {
  /// An absolute path. Together with `target` and `recipient` it identifies the entry.
  public var source: BytePath
  /// The URL under which the file will be found, normalized: one place has one key, however its URL was written.
  public var target: String
  /// A digest of what identifies the recipient besides `target`; nil: `target` alone does.
  public var recipient: String?
  /// Path below the endpoint.
  public var path: BytePath
  /// Bytes; nil: known only at the end of the source.
  public var length: Int64?
  /// nil: the source cannot distinguish versions, so nothing of an earlier run is used.
  public var validator: Validator?
  /// The media type that is sent with the file.
  public var contentType: String
  /// Bytes; nil: the parts are not planned in advance.
  public var partSize: Int64?
  /// How the name counts on where it is taken. Stored for `Journal.numberedNames`, and nil in the entries of a journal.
  package var numbered: NumberedName?
  /// The key of this source under its name without a number. A push that gave no numbers may have noted there that the file was
  /// not sent. nil: the name has no number; and in the entries of a journal.
  package var unnumberedKey: String?
  /// nil: the name at the destination is not sealed; and in the entries of a journal.
  package var sealedName: SealedNameFacts?
  /// Other files of the same push. Empty in the entries of a journal.
  package var relatives = Relatives()

  /// How a file belongs to others of its push.
  package struct Relatives: Sendable, Hashable {
    /// See `UploadItem.twin`.
    package var twin: BytePath?
    /// The same for all files of one photo, which are claimed together. nil: the file is alone.
    package var group: BytePath?
  }

  package init(
    source: BytePath, target: String, recipient: String? = nil, path: BytePath, length: Int64?, validator: Validator?,
    contentType: String = "application/octet-stream", partSize: Int64? = nil
  ) {
    self.source = source
    self.target = target
    self.recipient = recipient
    self.path = path
    self.length = length
    self.validator = validator
    self.contentType = contentType
    self.partSize = partSize
  }

  /// Represents `target` and `recipient` in the journal's tables. The URL of a file has no fragment, so `#` separates
  /// them.
  package var key: String { recipient.map { "\(target)#\($0)" } ?? target }

  static func parts(ofKey key: String) -> (target: String, recipient: String?) {
    guard let mark = key.utf8.lastIndex(of: UInt8(ascii: "#")) else { return (key, nil) }
    return (String(key[..<mark]), String(key[key.index(after: mark)...]))
  }

  /// Compares the content with that of an earlier intent.
  func match(with old: JournalIntent) -> Validator.VersionMatch {
    if let length, let other = old.length, length != other { return .different }
    guard let validator, let other = old.validator else { return .different }
    return validator.match(with: other)
  }
}

/// One upload in the journal.
///
/// A class, because an entry is large and is passed through many asynchronous calls, and the frame of each of them would
/// have copies of it.
public final class JournalEntry: Sendable, Identifiable {
  /// How far an upload is. The numbers are those of the journal's file.
  public enum State: Int, Sendable, CaseIterable {
    /// Nothing is known to have been sent.
    case intent = 0
    /// The server has a session for it.
    case open = 1
    /// The server has the whole file.
    case done = 2
    /// Failed, with `error`. Its session is kept and can be resumed.
    case failed = 3
    /// Given up, with `error`, because of the other files of its push. A resume does not know those files and skips
    /// this entry; the next push that finds the file decides again.
    case refused = 4
  }

  public let id: Int64
  /// What is uploaded, and where to.
  public let intent: JournalIntent
  /// The destination that the entry belongs to.
  public let destination: JournalDestination
  /// The id of the destination in this journal.
  public let destinationID: Int64
  /// How far the upload is.
  public let state: State
  /// The state that is needed to resume the upload; nil: the server has none.
  package let session: UploadSession?
  /// By part number; empty for protocols that use offsets instead of parts.
  package let receipts: [PartReceipt]
  /// Bytes that runs have handed to their connections in this session, including a run in progress.
  package let sent: [SentRange]
  /// No run has handed bytes at or after this offset to a connection in this session. nil: unknown, as after a power
  /// failure.
  package let sentLimit: Int64?
  /// Bytes that the server had confirmed at the last note. The server's own answer may differ and is authoritative.
  public let acknowledged: Int64
  /// The URL of the finished upload according to the server; nil if the server gave none.
  public let location: String?
  /// The message of the last failure; nil: there was none.
  public let error: String?
  /// Seconds since 1970.
  public let created: Int64
  /// When the entry was last changed, in seconds since 1970.
  public let updated: Int64
  /// The process that has claimed the entry; nil if there is none or it has died.
  package let owner: ProcessIdentity?
  /// A live process, perhaps this one, has claimed the entry.
  public var isClaimed: Bool { owner != nil }
  /// Length of the version that was last sent completely; of the current version if the entry is done. nil: none was,
  /// or an earlier format of the journal did not store it.
  public let sentLength: Int64?

  /// The entry is not to be sent. The server may still have data of an upload that another one has replaced; this data
  /// is to be deleted.
  public let isLeftover: Bool

  /// The entry was done, and only the server can tell whether it still has the upload, at `location`. Another source was
  /// later sent to the same place, and the server may keep uploads of the same name apart; or the success may have been the
  /// response to another request (`isDoubted`).
  public let isSuperseded: Bool

  /// The response that said that the upload is stored may have belonged to another request.
  var isDoubted: Bool { isSuperseded && state == .intent }

  init(
    id: Int64, intent: JournalIntent, destination: JournalDestination, destinationID: Int64, state: State,
    session: UploadSession?, receipts: [PartReceipt], sent: [SentRange], sentLimit: Int64?, acknowledged: Int64,
    location: String?, error: String?, created: Int64, updated: Int64, owner: ProcessIdentity?, sentLength: Int64?,
    isLeftover: Bool, isSuperseded: Bool
  ) {
    (self.id, self.intent, self.destination, self.destinationID) = (id, intent, destination, destinationID)
    (self.state, self.session, self.receipts, self.sent) = (state, session, receipts, sent)
    (self.sentLimit, self.acknowledged, self.location, self.error) = (sentLimit, acknowledged, location, error)
    (self.created, self.updated, self.owner, self.sentLength) = (created, updated, owner, sentLength)
    (self.isLeftover, self.isSuperseded) = (isLeftover, isSuperseded)
  }

  /// The entry of its session, which another upload has replaced, under an id of its own.
  func leftover(as id: Int64) -> JournalEntry {
    JournalEntry(
      id: id, intent: intent, destination: destination, destinationID: destinationID, state: state, session: session,
      receipts: receipts, sent: sent, sentLimit: sentLimit, acknowledged: acknowledged, location: location,
      error: error, created: created, updated: updated, owner: owner, sentLength: sentLength, isLeftover: true,
      isSuperseded: isSuperseded)
  }

  /// Whether a source of this length may have grown since a version of it was stored: it is longer than the one that was
  /// last sent completely. If there is none, the response to an earlier one may have been lost.
  func mayHaveGrown(to length: Int64?) -> Bool { length.map { $0 > sentLength ?? 0 } ?? false }

  /// The end of a leftover's key, which makes the key unique. Target URLs have no fragment.
  static func mark(ofLeftover id: Int64) -> String { "#left-\(id)" }
}

/// The result of a claim. After all results except `.done` and `.busy`, this journal owns the entry.
package enum JournalClaim: Sendable {
  /// The id of a new entry.
  case fresh(Int64)
  /// Unfinished, with the same version of the source: resume its session, if there is one. A session of another
  /// protocol becomes a separate leftover, which `abort` deletes.
  case resume(JournalEntry)
  /// Unfinished, perhaps with another version of the source: for example, a card that was unplugged and plugged in
  /// again has new inode numbers. The bytes that were sent must be compared before the session is resumed; then note
  /// `recognized`, or `restarted` and `recognized`.
  case unsure(JournalEntry)
  /// Start again under this id, because the version differs. `old` is the previous state. If it has a session, it is a
  /// separate entry, claimed as well: remove it once its session was aborted, or release it.
  case replaced(Int64, old: JournalEntry)
  /// The same version was sent before. If `isSuperseded`, ask the server whether it still has that upload.
  case done(JournalEntry)
  /// Claimed by a live process, perhaps this one; or a live process sends another source to the same place, or
  /// another file of the same photo.
  case busy(ProcessIdentity)

  package var isBusy: Bool { if case .busy = self { true } else { false } }

  /// The id of an entry that is sent from its first byte, and not resumed.
  var newID: Int64? {
    switch self {
    case .fresh(let id), .replaced(let id, _): id
    case .resume, .unsure, .done, .busy: nil
    }
  }

  /// The id of the claimed entry, or of the one that is done.
  var entryID: Int64? {
    switch self {
    case .fresh(let id), .replaced(let id, _): id
    case .resume(let entry), .unsure(let entry), .done(let entry): entry.id
    case .busy: nil
    }
  }

  /// The id of the claimed entry, unless that is done.
  var unfinished: Int64? { if case .done = self { nil } else { entryID } }
}

/// Totals of the uploads of one destination in one state.
public struct JournalSummary: Sendable, Hashable {
  /// The id of the destination in this journal.
  public var destinationID: Int64
  /// The destination whose uploads are counted.
  public var destination: JournalDestination
  /// The state of the uploads that are counted.
  public var state: JournalEntry.State
  /// Never 0.
  public var count: Int
  /// The sum of the known lengths.
  public var bytes: Int64
  /// Bytes that the servers had confirmed at the last note.
  public var acknowledged: Int64
}
