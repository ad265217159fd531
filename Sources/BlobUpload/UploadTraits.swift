import BlobCrypto
import BlobHTTP

/// Facts about a protocol that decide how uploads are planned. The defaults suit a protocol that sends a whole file in
/// one request.
public struct UploadTraits: Sendable {
  /// Where a request contains the digest of its body.
  public enum Digests: Sendable {
    /// Bodies carry no digest.
    case none
    /// In the header section: the body is read for the digest before it is sent.
    case ahead
    /// In a trailer if trailers get through, otherwise in the header section.
    case trailing
  }

  /// What becomes of the query of a destination's URL.
  public enum Queries: Sendable {
    /// All requests go to that URL, or take the query with them.
    case carried
    /// The URL may be that of one file. Files below a folder have URLs of their own, without the query.
    case ofOneFile
    /// Requests go to other URLs, without the query.
    case dropped
  }

  /// The server knows parts by their numbers and takes them in any order. Otherwise it counts bytes from the first one on.
  public var numbersParts: Bool
  /// Bytes sent after an empty creation can be resumed at any offset, and the server reports how far an upload is. A
  /// creation that contains the file starts from the first byte each time.
  public var resumesCreations: Bool
  /// The server reports its offset while a body arrives, through `UploadContext.acknowledged`.
  public var acknowledgesOnTheWay: Bool
  /// `UploadTarget.metadata` is sent to the server.
  public var carriesMetadata: Bool
  /// An upload writes to temporary names, which the server never deletes by itself.
  public var leavesTemporaryFiles: Bool
  /// Files are posted to another URL than the one where they are stored.
  public var postsToEndpoint: Bool
  /// Where a request contains the digest of its body.
  public var digests: Digests
  /// Each request must give the length of its body: a part of a source of unknown length is read ahead.
  public var needsBodyLengths: Bool
  /// What becomes of the query of a destination's URL.
  public var queries: Queries
  /// What decides, besides the URL, where a file arrives, for example the fields of a form; nil: the URL decides. The
  /// journal stores only a digest of it.
  public var recipient: [String]?
  /// The receiver is told the last component of a file's path only: two files of that name in different folders have
  /// the same name for it.
  public var dropsFolders: Bool
  /// The digests that bodies can carry and the server can verify; empty: none.
  public var checksums: [Digest.Algorithm]
  /// A field of the request names the file, so the URL that uploads are posted to may end in any component.
  public var namesInFields: Bool
  /// The first component of an endpoint's path is a bucket, and names in it are taken literally: there are no folders
  /// called `.` or `..`, and no queries.
  public var namesBuckets: Bool
  /// How the server makes one file of several uploads; nil: it does not.
  public var concatenation: (any UploadConcatenation)?
  /// The server compares what it stores with checksums of what it was sent, and gives each stored version another name, an
  /// ETag or a generation.
  public var provesVersions: Bool
  /// A digest that the server tells may be one that the sending program has told it, which proves nothing about the
  /// stored bytes.
  public var repeatsDigests: Bool
  /// The server publishes the files of a group together.
  package var publishesGroups = false
  /// Signs every request to the destination, as the last thing before it is sent; nil: requests are not signed.
  public var sign: (@Sendable (inout HTTPRequest) -> Void)?

  /// Creates traits. The defaults suit a protocol that sends a whole file in one request.
  public init(
    numbersParts: Bool = false, resumesCreations: Bool = false, acknowledgesOnTheWay: Bool = false,
    carriesMetadata: Bool = false, leavesTemporaryFiles: Bool = false, postsToEndpoint: Bool = false,
    digests: Digests = .none, needsBodyLengths: Bool = false, queries: Queries = .carried,
    recipient: [String]? = nil, dropsFolders: Bool = false, checksums: [Digest.Algorithm] = [],
    namesInFields: Bool = false, namesBuckets: Bool = false, concatenation: (any UploadConcatenation)? = nil,
    provesVersions: Bool = false, repeatsDigests: Bool = false,
    sign: (@Sendable (inout HTTPRequest) -> Void)? = nil
  ) {
    self.numbersParts = numbersParts
    self.resumesCreations = resumesCreations
    self.acknowledgesOnTheWay = acknowledgesOnTheWay
    self.carriesMetadata = carriesMetadata
    self.leavesTemporaryFiles = leavesTemporaryFiles
    self.postsToEndpoint = postsToEndpoint
    self.digests = digests
    self.needsBodyLengths = needsBodyLengths
    self.queries = queries
    self.recipient = recipient
    self.dropsFolders = dropsFolders
    self.checksums = checksums
    self.namesInFields = namesInFields
    self.namesBuckets = namesBuckets
    self.concatenation = concatenation
    self.provesVersions = provesVersions
    self.repeatsDigests = repeatsDigests
    self.sign = sign
  }
}
