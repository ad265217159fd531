import BlobCrypto
import BlobHTTP
import Blobs

/// Finds out how files can be uploaded to a server. Every `UploadProtocol` does it for itself; `NegotiatedProtocol` asks
/// the server which protocol to speak.
public protocol ProtocolDiscovery: Sendable {
  /// Facts about uploads by this protocol that decide how they are planned, and how its requests are signed.
  var traits: UploadTraits { get }

  /// Returns the protocol adapted to the server, and the server's limits. Called once per host and push; called again
  /// if no response arrives.
  func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer
}

extension ProtocolDiscovery {
  public var traits: UploadTraits { UploadTraits() }
}

/// A protocol that a server speaks, and the server's limits.
public struct UploadOffer: Sendable {
  /// The protocol, adapted to what the server has announced.
  public var uploadProtocol: any UploadProtocol
  /// The limits of the server, for its parts and its files.
  public var limits: PartLimits

  /// Creates an offer of a protocol with limits.
  public init(_ uploadProtocol: any UploadProtocol, _ limits: PartLimits) {
    self.uploadProtocol = uploadProtocol
    self.limits = limits
  }
}

/// Asks a server which protocols it speaks, by OPTIONS. tus is chosen if it can create an upload with the first bytes,
/// then resumable uploads if the server reports their limits, then WebDAV, and PUT if nothing better is offered.
public struct NegotiatedProtocol: ProtocolDiscovery {
  /// Uploads must carry digests of this algorithm, and the server must verify them; nil: no digests are needed.
  public var checksum: Digest.Algorithm?
  /// The end of the source is not known yet, so a protocol that acknowledges bytes during a request is better than tus.
  public var isStream: Bool
  /// A server that accepts plain PUT only, and replaces the content of a name, is queried for each name first.
  public var asksForNames: Bool

  /// Creates a value that asks the server. `checksum` is the digest to send with each body; nil: none.
  public init(checksum: Digest.Algorithm? = nil, isStream: Bool = false, asksForNames: Bool = false) {
    self.checksum = checksum
    self.isStream = isStream
    self.asksForNames = asksForNames
  }

  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    let response = try await with.send(request)
    if let refusal = UploadError(asking: request, response) { throw refusal }
    let resumable = IETFResumable(checksum: checksum)
    if isStream, checksum == nil, response.isSuccess, let limits = resumable.limits(from: response.headers) {
      return UploadOffer(resumable.offered(response.headers), limits)
    }
    let tus = Tus(checksum: checksum)
    if response.isSuccess, let limits = tus.limits(from: response.headers), limits.firstPart > 0 || checksum != nil {
      try tus.checkOffer(response.headers, at: target.endpoint, with)
      return UploadOffer(tus.offered(response.headers), limits)
    }
    if let checksum { try ContentDigest.checkOffer(request, response, checksum, at: target.endpoint) }
    if response.isSuccess, let limits = resumable.limits(from: response.headers) {
      return UploadOffer(resumable.offered(response.headers), resumable.bounded(limits))
    }
    if checksum == nil, response.isSuccess, WebDAV.isOffered(by: response.headers) {
      let dav = WebDAV()
      return UploadOffer(dav, dav.limits(at: target.endpoint))
    }
    var put = PlainPut(checksum: checksum)
    put.asksFirst = asksForNames
    put.folders = DavFolders()
    return UploadOffer(put, put.limits)
  }
}
