import BlobHTTP
import Blobs

/// A dialect in which a server takes uploads: a stateless value. What must be remembered is in the session.
///
/// None of these retries or plans; the `Uploader` does. Any error says by its `recovery` what to do next.
public protocol UploadProtocol: Sendable {
  /// Short and stable: it is kept in the journal. `put`, `tus`.
  var name: String { get }

  /// What uploads by this protocol can do, and what they must do.
  var traits: UploadTraits { get }

  /// What the server allows; asked once per host and push.
  func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> PartLimits

  /// Starts an upload, with the bytes of a first part where the dialect takes them (`PartLimits.firstPart`).
  func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held

  /// What the server has; its answer is the truth, whatever was sent.
  func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held

  func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent

  /// Makes the whole of the parts, once the server has them all. Called again where no answer came: a refusal may mean that it
  /// was made before.
  func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext)
    async throws(UploadError) -> UploadResult

  /// Whether the server still has what was uploaded in an earlier run, whole. `location`: what `UploadResult` said.
  func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError) -> Bool

  /// Whether the server has the bytes of `whole`, by a digest that it tells; nil: it tells none that can be compared.
  func hasSameBytes(
    as whole: BlobSlice, _ target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> Bool?

  /// Where the bytes of a finished upload can be read. `location`: what `UploadResult` said.
  func place(
    of target: UploadTarget, location: String?, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL

  /// Judges why the bytes could not be read back there.
  func judge(readingBack error: UploadError, location: String?) -> UploadError

  /// Deletes the unfinished upload on the server. One that is gone already is a success.
  func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError)
}

/// Where one source goes, and as what.
public struct UploadTarget: Sendable {
  /// The URL that was given: tus posts to it.
  public var endpoint: HTTPURL
  /// Where the bytes will be found: PUT writes to it.
  public var url: HTTPURL
  /// The path below the endpoint's folder, as bytes; its last component is the file's name.
  public var path: BytePath
  /// Bytes; nil when only the end will tell.
  public var length: Int64?
  public var contentType: String
  /// Replace other bytes under the same name.
  public var overwrite: Bool
  /// What else is to be told of it, where the dialect carries that: tus, S3. Keys are lower-case letters and dashes.
  public var metadata: [String: String] = [:]
  /// Nanoseconds since 1970 when the source was last written, for the server to keep; nil: it is not told. Forms do not
  /// carry it.
  public var modified: Int64?
  /// A digest of what decides where the file arrives, besides `url`; nil: `url` says it all.
  var recipient: String?

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

/// How a dialect and a server want a body cut. The defaults allow everything, in one piece at a time.
public struct PartLimits: Sendable, Codable, Hashable {
  /// Bytes of any part but the last.
  public var smallest: Int64
  /// Bytes of any part; nil: no limit.
  public var largest: Int64?
  /// Bytes of a part where the length is known and no other size is asked for; nil: all goes in one.
  public var usual: Int64?
  public var count: Int?
  /// Several parts of one upload at once.
  public var isParallel: Bool
  /// The length must be known when the upload is created.
  public var needsLength: Bool
  /// Bytes of a first part that may travel with the creation; 0: none.
  public var firstPart: Int64
  /// Bytes of the whole; nil: no limit.
  public var total: Int64?

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
  /// Keeps what both allow.
  mutating func tighten(by other: PartLimits) {
    smallest = max(smallest, other.smallest)
    if let largest = other.largest { self.largest = min(self.largest ?? largest, largest) }
    if let total = other.total { self.total = min(self.total ?? total, total) }
  }
}

/// What must be remembered to go on: in the journal, so no secret is in it.
public struct UploadSession: Sendable, Codable, Hashable {
  /// What the protocol needs, under keys of its own. `part-size`, `parts`, `joined` and `end` are the engine's, and `url`
  /// is what `uploadURL` reads.
  public var state: [String: String]
  public var limits: PartLimits
  /// Seconds since 1970 after which the server forgets it; nil: not told.
  public var expires: Int64?

  public init(state: [String: String], limits: PartLimits = PartLimits(), expires: Int64? = nil) {
    self.state = state
    self.limits = limits
    self.expires = expires
  }
}

/// A planned range of the source.
public struct Part: Sendable, Hashable {
  /// From 1 up.
  public var number: Int
  public var start: Int64
  /// nil: to the end of a source of unknown length.
  public var length: Int64?
  public var isLast: Bool

  public init(number: Int, start: Int64, length: Int64?, isLast: Bool) {
    self.number = number
    self.start = start
    self.length = length
    self.isLast = isLast
  }
}

/// The bytes that travel with the creation of an upload.
public struct FirstPart: Sendable {
  public var part: Part
  public var body: BlobSlice

  public init(_ part: Part, _ body: BlobSlice) {
    self.part = part
    self.body = body
  }
}

extension UploadProtocol {
  public var traits: UploadTraits { UploadTraits() }

  /// Asks servers that are known to tell digests by RFC 9530.
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

  /// Whether the server says that it has all bytes of the upload, so that the upload is a file there, and to delete it would
  /// delete the file. false: bytes are missing, the upload is gone, or the server gives no answer.
  package func hasWhole(_ session: UploadSession, _ with: UploadContext) async -> Bool {
    if case .finished? = try? await held(by: session, with) { return true }
    return false
  }
}

/// The server's word that it has a part.
public struct PartReceipt: Sendable, Codable, Hashable {
  public var number: Int
  public var start: Int64
  /// Bytes of the part that the server has; `PartReceipt.all` where it only says that it has taken what was sent.
  public var held: Int64
  /// ETag, checksum, URL: what completing needs. A part that the server lists is taken for the one that was sent if both
  /// receipts say the same under `etag`, or neither says anything.
  public var state: [String: String]

  /// The server took the part and did not say how many bytes of it.
  public static let all = Int64.max

  public init(number: Int, start: Int64, held: Int64, state: [String: String] = [:]) {
    self.number = number
    self.start = start
    self.held = held
    self.state = state
  }
}

/// A finished upload.
public struct UploadResult: Sendable, Codable, Hashable {
  /// Where the server says it is.
  public var location: String?
  public var state: [String: String]
  /// The server's answer, at most 64 KiB of it.
  public var reply: [UInt8]
  /// Bytes that the server says it has of the whole; nil: it does not say. In the result of an upload that is done, the
  /// source's length, which was compared with that.
  public var length: Int64?
  /// The server had the same bytes under the name before they were sent, and has stored nothing.
  public var wasThere = false
  /// What the server has was found to be the source's bytes, by reading it back or by its digest: it need not have been
  /// sent in this upload.
  public var isCompared: Bool

  public init(
    location: String? = nil, state: [String: String] = [:], reply: [UInt8] = [], length: Int64? = nil,
    isCompared: Bool = false
  ) {
    self.location = location
    self.state = state
    self.length = length
    self.isCompared = isCompared
    self.reply = reply.count <= 64 << 10 ? reply : Array(reply.prefix(64 << 10))
  }

  /// The location as the journal keeps it: with the version that the server gave to what was stored, as its fragment.
  var journaled: String? { state["version"].map { "\(location ?? "")#\($0)" } ?? location }
}

/// What the server holds of an upload.
public enum Held: Sendable {
  /// Every byte before this offset.
  case upTo(Int64, UploadSession)
  case parts([PartReceipt], UploadSession)
  case finished(UploadResult)
}

/// What came of sending a part.
public enum Sent: Sendable {
  case receipt(PartReceipt, UploadSession)
  case finished(UploadResult)
}
