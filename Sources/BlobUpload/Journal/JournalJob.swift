/// An upload that the system makes on behalf of an app, as Apple's background uploader for photo libraries does, and what is
/// known of it. There is one for each URL and account.
public struct JournalJob: Sendable, Hashable {
  /// How far a job is. The numbers are those of the journal's file.
  public enum State: Int64, Sendable {
    /// Nothing is under way. The version in `done`, if any, is at the destination.
    case idle = 0
    /// The job is about to be registered. Whether the system has it is known only by asking the system.
    case registering = 1
    /// The system has the job.
    case registered = 2
    /// The job has failed, and its retry is about to begin, is under way, or has ended.
    case retrying = 3
    /// `version` was given up, for the reason in `error`.
    case refused = 4
    /// `version` has failed, for the reason in `error`, and is tried again later.
    case waiting = 5
  }
  /// The URL at which the bytes will be found, without credentials.
  public let url: String
  /// A digest of the account for which it is uploaded; nil: none is known.
  public let account: String?
  /// The source, as a text whose form the sender of the job chooses.
  public var source: String
  /// The version that was sent last, whole; nil: none was. `unknownVersion`: one of several was, and not the newest for
  /// certain.
  public var done: String?
  /// The version that is under way, has failed, or was given up; nil: none.
  public var version: String?
  /// How far the job is.
  public var state: State
  /// How often the system was asked to send `version`.
  public var attempts: Int
  /// The message of the last failure; nil: there was none.
  public var error: String?
  /// Seconds since 1970.
  public var updated: Int64

  /// Creates a job for a URL. `updated` is in seconds since 1970.
  public init(
    _ url: String, account: String? = nil, source: String, done: String? = nil, version: String? = nil,
    state: State = .idle, attempts: Int = 0,
    error: String? = nil, updated: Int64 = 0
  ) {
    self.url = url
    self.account = account
    self.source = source
    self.done = done
    self.version = version
    self.state = state
    self.attempts = attempts
    self.error = error
    self.updated = updated
  }

  /// Represents `url` and `account` in the journal. The URL of a file has no fragment, so `#` separates them.
  package var key: String { Self.key(url, account) }
  package static func key(_ url: String, _ account: String?) -> String { account.map { "\(url)#\($0)" } ?? url }

  /// The asset in `source`, which is its first line: for a photo, the `localIdentifier` of the asset in the photo library.
  public var asset: String { String(source.prefix { $0 != "\n" }) }

  /// The digest of an account's name or number: 32 hexadecimal digits. nil: none is known.
  public static func digest(ofAccount account: String?) -> String? {
    account.flatMap { Recipient.digest(ofAccount: $0) }
  }

  /// A value of `done` that is no version.
  public static let unknownVersion = "?"

  /// The system may have a job for it.
  public var isOpen: Bool { [.registering, .registered, .retrying].contains(state) }

  /// Nothing is left to do for this version: it was sent, or given up.
  public func isSettled(_ version: String) -> Bool {
    state == .idle && done == version || state == .refused && self.version == version
  }
}
