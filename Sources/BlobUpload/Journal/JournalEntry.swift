import Blobs

/// What is about to be sent: durable before its first byte.
public struct JournalIntent: Sendable, Hashable {
  /// Absolute. With `target` and `recipient` it names the entry.
  public var source: BytePath
  /// The URL under which the bytes will be found.
  public var target: String
  /// A digest of what decides where and as what they arrive, besides `target`; nil: that says it all.
  public var recipient: String?
  /// Below the endpoint.
  public var path: BytePath
  /// Bytes; nil when only the end will tell.
  public var length: Int64?
  /// nil when the source cannot tell versions apart: then nothing of an earlier run is used.
  public var validator: Validator?
  public var contentType: String
  /// Bytes; nil when the parts are not planned.
  public var partSize: Int64?

  public init(
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

  /// What stands for `target` and `recipient` in the journal. No URL of a file has a fragment.
  var key: String { recipient.map { "\(target)#\($0)" } ?? target }

  static func parts(ofKey key: String) -> (target: String, recipient: String?) {
    guard let mark = key.utf8.lastIndex(of: UInt8(ascii: "#")) else { return (key, nil) }
    return (String(key[..<mark]), String(key[key.index(after: mark)...]))
  }

  /// How the content stands to that of an earlier intent.
  func likeness(to old: JournalIntent) -> Validator.Likeness {
    if let length, let other = old.length, length != other { return .different }
    guard let validator, let other = old.validator else { return .different }
    return validator.likeness(to: other)
  }
}

/// One upload as the journal remembers it.
public struct JournalEntry: Sendable, Identifiable {
  public enum State: Int, Sendable, CaseIterable {
    /// Nothing is known to have been sent.
    case intent = 0
    /// The server has a session for it.
    case open = 1
    case done = 2
    /// Given up, with `error`. Its session is kept: it can still go on.
    case failed = 3
    /// Given up, with `error`, because of the other files of its push: a resume, which does not know those, leaves it
    /// alone; the next push that finds the file decides anew.
    case refused = 4
  }

  public var id: Int64
  public var intent: JournalIntent
  public var destination: JournalDestination
  public var destinationID: Int64
  public var state: State
  public var session: UploadSession?
  /// By part number; empty for dialects that count in offsets.
  public var receipts: [PartReceipt]
  /// What runs have handed to their connections in this session; of the one under way too.
  public var sent: [SentRange]
  /// No run has handed bytes from this offset on to a connection, in this session. nil: that is not known, as after a power
  /// cut.
  public var sentLimit: Int64?
  /// Bytes the server vouched for when it was last noted. The server knows better: ask it.
  public var acknowledged: Int64
  /// Where the server says the finished upload is; nil when it did not.
  public var location: String?
  public var error: String?
  /// Seconds since 1970.
  public var created: Int64
  public var updated: Int64
  /// The process that has it claimed; nil when there is none or it has died.
  public var owner: ProcessMark?
  /// Bytes of the version that was last sent as a whole: of this one, if it is done. nil: none was, or an earlier format of
  /// the journal did not keep it.
  public var sentLength: Int64?

  /// Nothing is to be sent: the server may still have something of an upload that another one took the place of, which is to
  /// be deleted there.
  public var isLeftover = false

  /// It was done, and then another source was sent to the same place. Where the server keeps uploads of one name apart, it still
  /// has this one at `location`: only the server can tell.
  public var isSuperseded = false

  /// Whether `intent` is about a longer version than the one that was last sent as a whole.
  func hasGrown(to intent: JournalIntent) -> Bool {
    guard let sentLength, let length = intent.length else { return false }
    return sentLength < length
  }

  /// What the key of such an entry ends with, so that it is that of no other. No URL that is sent to has a fragment.
  static func mark(ofLeftover id: Int64) -> String { "#left-\(id)" }
}

/// The answer to a claim. All but `.done` and `.busy` make the entry this journal's own.
///
/// Indirect where it is large: of most files, which are new, it is a number.
public enum JournalClaim: Sendable {
  /// The id of a new entry.
  case fresh(Int64)
  /// Unfinished, and the same version of the source: go on with its session, where there is one. A session in
  /// another dialect becomes a leftover of its own, which is deleted by `abort`.
  indirect case resume(JournalEntry)
  /// Unfinished, and perhaps another version: a card that was plugged in again gives its files other numbers. What was
  /// sent must be compared before its session goes on; then note `recognized`, or `restarted` and `recognized`.
  indirect case unsure(JournalEntry)
  /// Start anew under this id: the version differs. `old` is what was known. Where it has a session, it is an entry of its
  /// own, claimed as well: remove it once its session was aborted, or release it.
  indirect case replaced(Int64, old: JournalEntry)
  /// The same version was sent before. With `isSuperseded` the server is to be asked whether it has kept that.
  indirect case done(JournalEntry)
  /// Claimed by a process that is alive, perhaps this one; or that process sends another source to the same place.
  case busy(ProcessMark)
}

/// The uploads of one destination that are in one state.
public struct JournalSummary: Sendable, Hashable {
  public var destinationID: Int64
  public var destination: JournalDestination
  public var state: JournalEntry.State
  /// Never 0.
  public var count: Int
  /// The sum of the known lengths.
  public var bytes: Int64
  /// Bytes the servers vouched for when it was last noted.
  public var acknowledged: Int64
}
