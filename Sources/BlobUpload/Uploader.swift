import BlobHTTP
import Blobs
import Synchronization

/// Brings one source to where it should go: plans parts, sends what the server lacks, writes receipts to the journal.
///
/// It alone retries, and switches on `UploadError.recovery` alone. The server is the truth: after any doubt it is asked
/// what it holds, and sending goes on from there.
public struct Uploader: Sendable {
  public var destination: UploadDestination
  public var transport: any Transport
  /// Where sessions are remembered; nil: nothing outlives this process.
  public var journal: Journal?
  public var retry: RetryPolicy
  /// Bytes of a part, where the user wants it; nil: as the dialect likes.
  public var partSize: Int64?
  /// Parts of one file at once, where the server makes a file of parts; nil: as many as the link gains by; 1: none.
  public var partsAtOnce: Int?
  /// A file of fewer bytes goes in one piece, and no part but the last is smaller.
  package var (parallelFrom, smallestPart): (Int64, Int64) = (16 << 20, 4 << 20)
  /// How much of a sequential source is held, so that it can be sent again.
  public var spool = SpoolOptions()
  public var clock: any Clock<Duration> = ContinuousClock()
  /// Called with what went wrong and the time until the next try. On any thread; must be short.
  public var retrying: (@Sendable (UploadError, Duration) -> Void)?
  /// Called with what the user should know though the upload goes on. On any thread; must be short.
  public var notice: (@Sendable (String) -> Void)?
  /// Called with the number of bytes that were just read to be compared with what the server has: read back from it, or
  /// read from the source for a digest. On any thread; must be short.
  public var compared: (@Sendable (Int) -> Void)?

  public init(
    _ destination: UploadDestination, transport: any Transport, journal: Journal? = nil,
    retry: RetryPolicy = RetryPolicy(), partSize: Int64? = nil
  ) {
    self.destination = destination
    self.transport = transport
    self.journal = journal
    self.retry = retry
    self.partSize = partSize
  }

  /// Uploads `source`, which must be the version that `info` describes, and returns when the server has it whole.
  ///
  /// - `entry`: its row in the journal; nil: it is not journaled. `session` and `receipts`: what an earlier run left there.
  /// - `doubted`: not nil where the source may have other bytes now: the session goes on only if it still has these, up
  ///   to what the server holds; else the upload begins anew.
  /// - `limit`: earlier runs have handed no byte from this offset on to a connection, so that a server which says that it
  ///   holds more is not believed; nil: it is not known.
  /// - Throws when nothing more can be done here; what the server holds stays there and can be resumed, unless
  ///   the source changed, or is read once and has no version. Cancelling the task throws with side `.cancelled`.
  public func upload(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, entry: Int64? = nil,
    resuming session: UploadSession? = nil, receipts: [PartReceipt] = [], comparing doubted: [SentRange]? = nil,
    sentAtMost limit: Int64? = nil, progress: Progress = Progress()
  ) async throws(UploadError) -> UploadResult {
    try await UploadEngine(self).upload(
      source, info, to: target, entry: entry, resuming: session, receipts: receipts, comparing: doubted,
      sentAtMost: limit, progress: progress)
  }

  /// A reader that has lost its source is opened again at the same byte, if that is still the same version; a slow source
  /// is read before its bytes are wanted.
  static func prepared(_ source: any BlobSource, _ info: BlobInfo) -> any BlobSource {
    // One that is read once cannot be opened again, and one without a version cannot be known again.
    let source = source.access == .random && info.validator != nil ? ReopeningSource(source) : source
    if info.readAhead == 0 { return source }
    return ReadAheadSource(source, capacity: info.readAhead, ifSlowerThan: Self.quick)
  }

  /// Bytes a second. A source that gives as many is no slower than most disks and most links, and where a link is
  /// quicker still, what reading ahead costs is more than what it saves.
  private static let quick: Int64 = 250_000_000

  /// Deletes what an earlier run left on the server. Returns whether the server has answered that: it is gone, or the server
  /// refuses for good to delete it, and lets it expire. false: it is to be tried again.
  @discardableResult
  public func discard(_ session: UploadSession) async -> Bool {
    do { try await destination.dialect.abort(session, context()) } catch { return error.refusesDeletion }
    return true
  }

  /// Whether the server says that it has all bytes of what an earlier run left there. Temporary files of WebDAV are never a
  /// file of the user's, and are deleted also where the file has its name.
  func hasWhole(_ session: UploadSession) async -> Bool {
    if destination.traits.leavesTemporaryFiles { return false }
    return await destination.dialect.hasWhole(session, context())
  }

  /// Whether the server still has what was uploaded earlier.
  public func isThere(_ target: UploadTarget, location: String?) async throws(UploadError) -> Bool {
    try await patiently("\(target.path)") { () async throws(UploadError) in
      try await destination.dialect.isThere(target, location: location, context())
    }
  }

  func context(_ events: any UploadEvents = NoUploadEvents()) -> UploadContext { UploadContext(server, events) }

  var server: UploadServer {
    UploadServer(
      transport, destination.credentials, at: destination.endpoint, destination.acquaintance,
      sign: destination.traits.sign,
      compared: compared ?? { _ in }, notice: notice ?? { _ in },
      patiently: { what, ask async throws(UploadError) in try await patiently(what, ask) })
  }
}

/// A place that takes uploads, and what is known of it.
public struct UploadDestination: Sendable {
  /// The URL as given.
  public var endpoint: HTTPURL
  public var dialect: any UploadProtocol {
    didSet { (traits, recipient) = (dialect.traits, Recipient(endpoint, dialect, headers)) }
  }
  public private(set) var traits: UploadTraits
  var recipient: Recipient
  public var limits: PartLimits
  /// Credentials and the user's own fields; they go to the endpoint's origin and to no other.
  public var headers: HTTPHeaders {
    didSet {
      recipient = Recipient(endpoint, dialect, headers)
      credentials = Credentials(headers, rereading: credentials.reread)
    }
  }
  /// `headers`, as they are now.
  var credentials: Credentials
  let acquaintance = Acquaintance()
  /// To be asked while files are sent.
  var question: OpenQuestion?

  public init(endpoint: HTTPURL, dialect: any UploadProtocol, limits: PartLimits, headers: HTTPHeaders = [:]) {
    self.endpoint = endpoint
    self.dialect = dialect
    traits = dialect.traits
    recipient = Recipient(endpoint, dialect, headers)
    self.limits = limits
    self.headers = headers
    credentials = Credentials(headers)
  }
}

extension UploadDestination {
  /// Where the source goes that is called `path` below the endpoint's folder (the endpoint up to its last slash).
  public func target(
    _ path: BytePath, length: Int64?, contentType: String = "application/octet-stream", overwrite: Bool = false
  ) -> UploadTarget {
    // The query of a URL that names one file, as a signature, belongs to that file's URL.
    let isNamed = endpoint.path.utf8.last != UInt8(ascii: "/") && endpoint.lastComponent == path.bytes
    let url = isNamed && endpoint.query != nil ? endpoint : endpoint.folder.appending(pathBytes: path.bytes)
    var target = UploadTarget(
      endpoint: endpoint, url: url, path: path, length: length, contentType: contentType, overwrite: overwrite)
    target.recipient = isNamed ? recipient.ofFileAtOwnURL : recipient.ofFile
    return target
  }
}
