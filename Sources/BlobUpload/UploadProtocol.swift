import BlobHTTP
import Blobs

/// A protocol for uploads to a server: a stateless value. State that must be remembered is in the session.
///
/// Implementations neither retry nor plan; the `Uploader` does. The `recovery` of a thrown error says what to do next.
public protocol UploadProtocol: ProtocolDiscovery {
  /// Short and stable, since it is stored in the journal, for example `put` or `tus`.
  var name: String { get }

  /// Starts an upload, with the bytes of a first part if the protocol supports that (`PartLimits.firstPart`).
  func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held

  /// Asks the server which bytes it has. Its response is authoritative, whatever was sent.
  func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held

  /// Sends one part, from its first byte on, and returns what the server confirms. Called for several parts at once if
  /// `PartLimits.isParallel` is set.
  func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent

  /// Completes the upload from its parts, once the server has them all. Called again if no response arrived, so a
  /// refusal may mean that an earlier call succeeded.
  func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext)
    async throws(UploadError) -> UploadResult

  /// Whether the server still has the whole file that an earlier run uploaded. `location`: from `UploadResult`.
  func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError) -> Bool

  /// Whether the server has the bytes of `whole`, according to a digest that it returns; nil: it returns none that can
  /// be compared.
  func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool?

  /// The file that the server has for `target`, as far as it tells; nil: it has none. By default asks with HEAD.
  /// `location`: from `UploadResult`.
  func remoteFile(
    _ target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> RemoteFile?

  /// Calls `take` with the files and folders in a folder, page by page. Returns false if the server does not list them, as
  /// most do not. Throws an error with status 404 or 410 if there is no such folder, or calls `take` with nothing where the
  /// server cannot tell. `folder` ends in a slash.
  func listEntries(
    in folder: HTTPURL, _ with: UploadContext, _ take: ([ListedEntry]) async throws(UploadError) -> Void
  ) async throws(UploadError) -> Bool

  /// The URL from which the bytes of a finished upload can be read. `location`: from `UploadResult`.
  func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL

  /// Classifies the error of a failed attempt to read the bytes back from `place`.
  func judge(readingBack error: UploadError, location: String?) -> UploadError

  /// Deletes the unfinished upload on the server. Succeeds also if it no longer exists.
  func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError)

  /// This protocol, and these limits, for a transport that sends bodies only from files of up to `most` bytes, and no
  /// trailers; nil, as by default: such bodies cannot make a larger file.
  func withFileBodies(upTo most: Int64, _ limits: PartLimits) -> UploadOffer?

  /// Calls `take` with the unfinished uploads that the server lists for names that begin with `prefix`, page by page.
  /// `take` may delete them. `endpoint`: any URL of the destination. By default throws with `.giveUp`: the protocol has
  /// no such list.
  func orphans(
    _ prefix: [UInt8], at endpoint: HTTPURL, _ with: UploadContext,
    _ take: ([OrphanedUpload]) async throws(UploadError) -> Void
  ) async throws(UploadError)

  /// Deletes an unfinished upload of that list. Succeeds if it is already gone.
  func delete(_ orphan: OrphanedUpload, _ with: UploadContext) async throws(UploadError)
}

/// The destination of one source, and how it is stored there.
public struct UploadTarget: Sendable {
  /// The URL that the user gave; tus posts to it.
  public var endpoint: HTTPURL
  /// The URL of the stored file; PUT writes to it.
  public var url: HTTPURL
  /// The path below the endpoint's folder, as bytes; its last component is the file's name. Requests may contain it.
  public var path: BytePath
  /// The path whose name is sealed, which no request may contain; nil: names are not sealed.
  var unsealedPath: BytePath?
  /// Length in bytes; nil: known only when the source has ended.
  public var length: Int64?
  /// The media type that is sent with the file.
  public var contentType: String
  /// Whether to replace other bytes under the same name.
  public var overwrite: Bool
  /// The file that `overwrite` replaces, as far as it is known.
  package var replaced = ReplacedFile.unknown
  /// Further metadata for the server, if the protocol supports that: tus and S3. Keys consist of lower-case letters and
  /// dashes.
  public var metadata: [String: String] = [:]
  /// Modification time of the source in nanoseconds since 1970, which the server is asked to keep; nil: it is not sent.
  /// Forms do not transmit it.
  public var modified: Int64?
  /// The files together with which the server publishes this one; nil: it is published by itself. Set only for servers that
  /// publish groups.
  package var group: UploadGroup?
  /// A digest of what decides where the file arrives, besides `url`; nil: `url` is sufficient.
  var recipient: String?

  /// The path as the user knows it. No request may contain it.
  package var plainPath: BytePath { unsealedPath ?? path }

  /// Creates a target. `length` is in bytes; nil: known only when the source has ended.
  public init(
    endpoint: HTTPURL, url: HTTPURL, path: BytePath, length: Int64?,
    contentType: String = "application/octet-stream", overwrite: Bool = false
  ) {
    self.endpoint = endpoint
    self.url = url
    self.path = path
    self.length = length
    self.contentType = contentType
    self.overwrite = overwrite
  }
}

/// Limits of a protocol and a server for the parts of an upload. The defaults allow everything, in one request at a
/// time.
public struct PartLimits: Sendable, Codable, Hashable {
  /// Minimum bytes of any part except the last one.
  public var smallest: Int64
  /// Maximum bytes of any part; nil: no limit.
  public var largest: Int64?
  /// Bytes of a part if the length is known and no other size is requested; nil: the file is sent in one part.
  public var usual: Int64?
  /// Maximum number of parts of one upload; nil: no limit.
  public var count: Int?
  /// Several parts of one upload may be sent at the same time.
  public var isParallel: Bool
  /// The length must be known when the upload is created.
  public var needsLength: Bool
  /// Maximum bytes of a first part sent with the request that creates the upload; 0: not supported.
  public var firstPart: Int64
  /// Maximum bytes of the whole file; nil: no limit.
  public var total: Int64?

  /// Creates limits. Sizes are in bytes; the defaults allow everything.
  public init(
    smallest: Int64 = 1, largest: Int64? = nil, usual: Int64? = nil, count: Int? = nil, isParallel: Bool = false,
    needsLength: Bool = false, firstPart: Int64 = 0, total: Int64? = nil
  ) {
    self.smallest = smallest
    self.largest = largest
    self.usual = usual
    self.count = count
    self.isParallel = isParallel
    self.needsLength = needsLength
    self.firstPart = firstPart
    self.total = total
  }
}

extension PartLimits {
  /// Reduces the limits to what both values allow.
  mutating func tighten(by other: PartLimits) {
    smallest = max(smallest, other.smallest)
    if let largest = other.largest { self.largest = min(self.largest ?? largest, largest) }
    if let total = other.total { self.total = min(self.total ?? total, total) }
  }
}

/// The state needed to resume an upload. It is stored in the journal, so it must not contain secrets.
public struct UploadSession: Sendable, Codable, Hashable {
  /// State of the protocol under its own keys. The keys `part-size`, `parts`, `joined` and `end` belong to the engine,
  /// and `uploadURL` reads `url`.
  public var state: [String: String]
  /// The limits that apply to this upload.
  public var limits: PartLimits
  /// Seconds since 1970 after which the server deletes the upload; nil: unknown.
  public var expires: Int64?

  /// Creates a session. `expires` is in seconds since 1970; nil: unknown.
  public init(state: [String: String], limits: PartLimits = PartLimits(), expires: Int64? = nil) {
    self.state = state
    self.limits = limits
    self.expires = expires
  }
}

/// A planned range of the source.
public struct Part: Sendable, Hashable {
  /// Counted from 1.
  public var number: Int
  /// Offset of the first byte in the source.
  public var start: Int64
  /// nil: up to the end of a source of unknown length.
  public var length: Int64?
  /// Whether the file ends with this part.
  public var isLast: Bool

  /// Creates a part. `length` is in bytes; nil: up to the end of a source of unknown length.
  public init(number: Int, start: Int64, length: Int64?, isLast: Bool) {
    self.number = number
    self.start = start
    self.length = length
    self.isLast = isLast
  }
}

/// The bytes sent with the request that creates an upload.
public struct FirstPart: Sendable {
  /// The range of the source.
  public var part: Part
  /// The bytes of the range.
  public var body: BlobSlice

  /// Creates a first part of a range and its bytes.
  public init(_ part: Part, _ body: BlobSlice) {
    self.part = part
    self.body = body
  }
}

extension UploadProtocol {
  /// Queries servers that are known to return digests by RFC 9530.
  public func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool? {
    with.server.knowledge.existing.tells ? try await with.hasSameBytes(as: whole, at: target.url) : nil
  }

  public func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    target.url
  }

  public func judge(readingBack error: UploadError, location: String?) -> UploadError { error }

  public func withFileBodies(upTo most: Int64, _ limits: PartLimits) -> UploadOffer? { nil }

  public func orphans(
    _ prefix: [UInt8], at endpoint: HTTPURL, _ with: UploadContext,
    _ take: ([OrphanedUpload]) async throws(UploadError) -> Void
  ) async throws(UploadError) {
    throw UploadError(.giveUp, .destination, "\(endpoint): \(name) servers do not list unfinished uploads")
  }

  public func delete(_ orphan: OrphanedUpload, _ with: UploadContext) async throws(UploadError) {
    throw UploadError(.giveUp, .destination, "\(orphan.url): \(name) servers do not list unfinished uploads")
  }

  /// Whether the server reports that it has all bytes of the upload. The upload is then a file, and deleting it would
  /// delete the file. false: bytes are missing, the upload no longer exists, or the server does not respond.
  package func hasWhole(_ session: UploadSession, _ with: UploadContext) async -> Bool {
    if case .finished? = try? await held(by: session, with) { return true }
    return false
  }
}

/// A confirmation from the server that it has a part.
public struct PartReceipt: Sendable, Codable, Hashable {
  /// The number of the part, counted from 1.
  public var number: Int
  /// Offset of the part's first byte in the source.
  public var start: Int64
  /// Bytes of the part that the server has; `PartReceipt.all` if it only reports success.
  public var held: Int64
  /// Values needed to complete the upload: ETag, checksum, URL. A part that the server lists counts as the part that
  /// was sent if both receipts have the same value for `etag`, or neither has one.
  public var state: [String: String]

  /// The server accepted the part and did not report how many bytes it has.
  public static let all = Int64.max

  /// Creates a receipt. `state` is stored in the journal, so it must not contain secrets.
  public init(number: Int, start: Int64, held: Int64, state: [String: String] = [:]) {
    self.number = number
    self.start = start
    self.held = held
    self.state = state
  }
}
