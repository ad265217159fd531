import BlobHTTP
import Blobs
import Synchronization

/// Uploads one source to its destination: plans parts, sends the bytes that the server lacks, writes receipts to the
/// journal.
///
/// Only this type retries, and it decides only by `UploadError.recovery`. The server's state is authoritative: after
/// any uncertainty it is queried, and the upload continues from there.
public struct Uploader: Sendable {
  /// Where sources are uploaded.
  public var destination: UploadDestination
  /// The transport that sends all requests.
  public var transport: any Transport
  /// The journal that stores sessions; nil: uploads cannot be resumed by another process.
  public var journal: Journal?
  /// How often and how long to retry.
  public var retry: RetryPolicy
  /// Bytes of a part, if the user chose a size; nil: the protocol decides.
  public var partSize: Int64?
  /// Maximum number of parts of one file that are sent at the same time, if the server can concatenate parts; nil: as
  /// many as increase the throughput; 1: the file is not split.
  public var partsAtOnce: Int? {
    get { splitting.partsAtOnce }
    set { splitting.partsAtOnce = newValue }
  }
  package var splitting = FileSplitting()
  /// How much of a sequential source is held so that it can be sent again.
  public var spool = SpoolOptions()
  /// The clock that retries wait by.
  public var clock: any Clock<Duration> = ContinuousClock()
  /// Requests of earlier processes that may not have ended; nil: requests end with their process.
  package var inFlight: (any RequestsInFlight)?
  /// Called with the error and the delay until the next try. On any thread; must be short.
  public var retrying: (@Sendable (UploadError, Duration) -> Void)?
  /// Called with messages for the user that do not stop the upload. On any thread; must be short.
  public var notice: (@Sendable (String) -> Void)?
  /// Called with the number of bytes just read for a comparison with the server: read back from it, or read from the
  /// source for a digest. On any thread; must be short.
  public var compared: (@Sendable (Int) -> Void)?

  /// Creates an uploader. It sends nothing. `partSize` is in bytes; nil: the protocol decides.
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

  /// Uploads `source`, which must be the version that `info` describes, and returns when the server has all of it.
  /// `session` and `receipts`: state left by an earlier run for the same version, which goes on.
  ///
  /// Throws when the upload cannot continue. The server's data stays and can be resumed, unless the source has changed, or
  /// is read only once and has no version. Cancelling the task throws with side `.cancelled`.
  public func upload(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, resuming session: UploadSession? = nil,
    receipts: [PartReceipt] = [], progress: UploadProgress = UploadProgress()
  ) async throws(UploadError) -> UploadResult {
    try await upload(
      source, info, to: target, entry: nil, resuming: session, receipts: receipts, progress: progress)
  }

  /// - `entry`: the upload's row in the journal; nil: it is not recorded there.
  /// - `doubted`: not nil if the source may have other bytes now. The session is resumed only if the source still has
  ///   the bytes of these ranges, up to the server's offset; otherwise a new upload starts.
  /// - `limit`: earlier runs have handed no byte from this offset on to a connection, so a server that reports a higher
  ///   offset is not believed; nil: unknown.
  package func upload(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, entry: Int64?,
    resuming session: UploadSession? = nil, receipts: [PartReceipt] = [], comparing doubted: [SentRange]? = nil,
    sentAtMost limit: Int64? = nil, progress: UploadProgress = UploadProgress()
  ) async throws(UploadError) -> UploadResult {
    try await UploadEngine(self).upload(
      source, info, to: target, entry: entry, resuming: session, receipts: receipts, comparing: doubted,
      sentAtMost: limit, progress: progress)
  }

  /// Wraps a source: a reader that loses its source is reopened at the same byte if the version is still the same, and
  /// a slow source is read ahead.
  static func prepared(_ source: any BlobSource, _ info: BlobInfo) -> any BlobSource {
    // A sequential source cannot be opened again, and without a version it cannot be recognised.
    let source = source.access == .random && info.validator != nil ? ReopeningSource(source) : source
    if info.readAhead == 0 { return source }
    return ReadAheadSource(source, capacity: info.readAhead, ifSlowerThan: Self.quick)
  }

  /// Bytes per second. A source of this speed is as fast as most disks and links, and on a faster link, reading ahead
  /// costs more than it saves.
  private static let quick: Int64 = 250_000_000

  /// Deletes an upload that an earlier run left on the server. Returns true if the server has responded: the upload no
  /// longer exists, or the server permanently refuses to delete it and lets it expire. false: the deletion should be
  /// tried again.
  @discardableResult
  public func discard(_ session: UploadSession) async -> Bool {
    do { try await destination.uploadProtocol.abort(session, context()) } catch { return error.refusesDeletion }
    return true
  }

  /// Whether the server reports that it has all bytes of an upload that an earlier run left. Always false for temporary
  /// files of WebDAV: they are never a file of the user, and are deleted even if the file has been stored under its
  /// name.
  func hasWhole(_ session: UploadSession) async -> Bool {
    if destination.traits.leavesTemporaryFiles { return false }
    return await destination.uploadProtocol.hasWhole(session, context())
  }

  /// Whether the server still has the file that was uploaded earlier.
  public func isThere(_ target: UploadTarget, location: String?) async throws(UploadError) -> Bool {
    try await patiently("\(target.path)") { () async throws(UploadError) in
      try await destination.uploadProtocol.isThere(target, location: location, context())
    }
  }

  func context(_ events: any UploadEvents = NoUploadEvents()) -> UploadContext { UploadContext(server, events) }

  var server: UploadServer {
    UploadServer(
      transport, destination.credentials, at: destination.endpoint, destination.acquaintance, journal: journal,
      sign: destination.traits.sign,
      compared: compared ?? { _ in }, notice: notice ?? { _ in },
      patiently: { what, ask async throws(UploadError) in try await patiently(what, ask) })
  }
}

/// How files are split into parts that are sent at the same time.
package struct FileSplitting: Sendable {
  /// As `Uploader.partsAtOnce`.
  package var partsAtOnce: Int?
  /// Smaller files are sent in one piece, in bytes.
  package var leastLength: Int64 = 16 << 20
  /// Minimum size in bytes of a part except the last one.
  package var smallestPart: Int64 = 4 << 20
}

/// A destination for uploads, and what is known about it.
public struct UploadDestination: Sendable {
  /// The URL that the user gave.
  public var endpoint: HTTPURL
  /// The protocol that is spoken. Setting it changes `traits` too.
  public var uploadProtocol: any UploadProtocol {
    didSet { (traits, recipient) = (uploadProtocol.traits, currentRecipient) }
  }
  /// The traits of the protocol.
  public private(set) var traits: UploadTraits
  var recipient: Recipient
  /// The limits of the server.
  public var limits: PartLimits
  /// Credentials and the user's own fields; they go to the endpoint's origin and to no other.
  public var headers: HTTPHeaders {
    didSet {
      recipient = currentRecipient
      credentials = Credentials(headers, rereading: credentials.reread)
    }
  }
  /// The user whose files are at the destination, by a name or number that does not change. Files that another account
  /// has uploaded do not count as uploaded for this one, and neither account continues uploads of the other. The
  /// journal stores only a digest of the account. nil: the user whom `headers` name, which a bearer token does not do.
  public var account: String? {
    didSet { recipient = currentRecipient }
  }
  /// For whom files are sealed. A file that was sealed for others, or not sealed, is another upload. nil: they are sent
  /// as they are.
  package var sealing: Sealing? {
    didSet { recipient = currentRecipient }
  }
  private var currentRecipient: Recipient { Recipient(endpoint, uploadProtocol, headers, account, sealing?.digest) }
  /// `headers`, as they are now.
  var credentials: Credentials
  let acquaintance = HostState()
  /// A query to run while files are being sent; nil: none.
  var question: DeferredProbe?

  /// Creates a destination without asking the server. `discover` asks it.
  ///
  /// `rereading`: called when the server has refused the credentials, for renewed `headers`, for example with a new token
  /// of the same user, on one thread at a time, which may block. nil, also as its result: the refusal is an error.
  public init(
    endpoint: HTTPURL, uploadProtocol: any UploadProtocol, limits: PartLimits, headers: HTTPHeaders = [:],
    account: String? = nil, rereading: (@Sendable () -> HTTPHeaders?)? = nil
  ) {
    self.endpoint = endpoint
    self.uploadProtocol = uploadProtocol
    traits = uploadProtocol.traits
    recipient = Recipient(endpoint, uploadProtocol, headers, account)
    self.account = account
    self.limits = limits
    self.headers = headers
    credentials = Credentials(headers, rereading: rereading)
  }
}

extension UploadDestination {
  /// The target of the source called `path` below the endpoint's folder (the endpoint up to its last slash).
  public func target(
    _ path: BytePath, length: Int64?, contentType: String = "application/octet-stream", overwrite: Bool = false
  ) -> UploadTarget {
    // The query of a URL that names one file, for example a signature, belongs to that file's URL only.
    let isNamed = endpoint.path.utf8.last != UInt8(ascii: "/") && endpoint.lastComponent == path.bytes
    let sealed = sealing?.names?.path(of: path)
    let url =
      isNamed && endpoint.query != nil ? endpoint : endpoint.folder.appending(pathBytes: (sealed ?? path).bytes)
    var target = UploadTarget(
      endpoint: endpoint, url: url, path: sealed ?? path, length: length, contentType: contentType,
      overwrite: overwrite)
    if sealed != nil { target.unsealedPath = path }
    target.recipient = isNamed ? recipient.ofFileAtOwnURL : recipient.ofFile
    return target
  }
}
