import BlobHTTP

/// Facts about a protocol that decide how uploads are planned. The defaults suit a protocol that takes a whole file in one
/// request.
public struct UploadTraits: Sendable {
  /// Where the digest of a body travels.
  public enum Digests: Sendable {
    /// Bodies carry no digest.
    case none
    /// In the head: a body is read for it before it is sent.
    case ahead
    /// After the body where trailers get through, otherwise in the head.
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
  /// Bytes that follow an empty creation can be resumed wherever the connection breaks, and the server's word tells how far an
  /// upload is. A creation that carries the file begins anew each time.
  public var resumesCreations: Bool
  /// The server tells how far it is while a body arrives, through `UploadContext.acknowledged`.
  public var acknowledgesOnTheWay: Bool
  /// The server is told `UploadTarget.metadata`.
  public var carriesMetadata: Bool
  /// An upload writes under names of its own, which the server never deletes by itself.
  public var leavesTemporaryFiles: Bool
  /// The URL that files are posted to is not the one that they are found at.
  public var postsToEndpoint: Bool
  public var digests: Digests
  /// Each request must say how long its body is: of a source whose length is not known, a part is read ahead.
  public var needsBodyLengths: Bool
  public var queries: Queries
  /// Signs every request to the destination, as the last thing before it is sent; nil: requests are not signed.
  public var sign: (@Sendable (inout HTTPRequest) -> Void)?

  public init(
    numbersParts: Bool = false, resumesCreations: Bool = false, acknowledgesOnTheWay: Bool = false,
    carriesMetadata: Bool = false, leavesTemporaryFiles: Bool = false, postsToEndpoint: Bool = false,
    digests: Digests = .none, needsBodyLengths: Bool = false, queries: Queries = .carried,
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
    self.sign = sign
  }
}
