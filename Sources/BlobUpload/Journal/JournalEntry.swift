import BlobSQLite
import Blobs

/// One push's destination and how it is spoken to: shared by its entries. Paths of secrets, never secrets.
public struct JournalDestination: Sendable, Codable, Hashable {
  /// The URL as given.
  public var endpoint: String
  /// `tus`, `put`.
  public var protocolName: String
  public var tokenFile: String?
  public var headerFiles: [String]
  public var caFile: String?
  public var proxy: String?
  public var insecure: Bool
  public var overwrite: Bool

  public init(
    endpoint: String, protocolName: String, tokenFile: String? = nil, headerFiles: [String] = [],
    caFile: String? = nil, proxy: String? = nil, insecure: Bool = false, overwrite: Bool = false
  ) {
    self.endpoint = endpoint
    self.protocolName = protocolName
    self.tokenFile = tokenFile
    self.headerFiles = headerFiles
    self.caFile = caFile
    self.proxy = proxy
    self.insecure = insecure
    self.overwrite = overwrite
  }
}

/// What is about to be sent, before its first byte. Source and target together name it.
public struct JournalIntent: Sendable, Hashable {
  /// An absolute path, or what else names the source across runs.
  public var source: BytePath
  /// The URL under which it will be found.
  public var target: String
  /// Below the endpoint's folder.
  public var path: BytePath
  public var length: Int64?
  public var validator: Validator?
  public var contentType: String
  public var partSize: Int64?

  public init(
    source: BytePath, target: String, path: BytePath, length: Int64?, validator: Validator?,
    contentType: String = "application/octet-stream", partSize: Int64? = nil
  ) {
    self.source = source
    self.target = target
    self.path = path
    self.length = length
    self.validator = validator
    self.contentType = contentType
    self.partSize = partSize
  }
}

/// What the journal knows of one upload.
public struct JournalEntry: Sendable, Identifiable {
  public enum State: Int, Sendable {
    /// Nothing is on the server yet, as far as we know.
    case intent = 0
    /// The server has a session for it.
    case open = 1
    case done = 2
    /// The last run gave up; `error` says why. What the server holds is still of use.
    case failed = 3
  }
  public var id: Int64
  public var intent: JournalIntent
  public var destination: JournalDestination
  public var destinationID: Int64
  public var state: State
  public var session: UploadSession?
  public var receipts: [PartReceipt]
  /// Bytes from the start that the server has vouched for.
  public var acknowledged: Int64
  /// Where the server said it is, once it is done.
  public var location: String?
  public var error: String?
  /// Seconds since 1970.
  public var created: Int64
  /// Seconds since 1970.
  public var updated: Int64
  /// The live process that has it.
  public var owner: ProcessMark?
}

/// What a claim found.
public enum JournalClaim: Sendable {
  /// Nothing was known of it: begin.
  case fresh(Int64)
  /// Unfinished, and the source is the same version: go on with its session, if it has one.
  case resume(JournalEntry)
  /// The source is another version, or may be: begin anew. What the old session left on the server is of no use.
  case replaced(Int64, old: JournalEntry)
  /// Finished before, and the source has not changed since.
  case done(JournalEntry)
  /// A live process has it; nothing was claimed.
  case busy(ProcessMark)
}

/// How many entries of one destination are in one state.
public struct JournalSummary: Sendable {
  public var destination: JournalDestination
  public var state: JournalEntry.State
  public var count: Int
  public var bytes: Int64
  public var acknowledged: Int64
}

/// The journal cannot be read or written. What was to be noted is lost; what is on the server is not.
public struct JournalError: Error, Sendable, CustomStringConvertible {
  public var message: String
  public var cause: (any Error)?

  public init(_ message: String, cause: (any Error)? = nil) {
    self.message = message
    self.cause = cause
  }

  init(_ error: SQLiteError) { self.init("the journal: \(error)", cause: error) }

  public var description: String { message }
}
