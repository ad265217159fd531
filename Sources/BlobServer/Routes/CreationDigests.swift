import BlobCrypto
import BlobHTTP
import Blobs

/// The digests that a request which creates an upload brings, by tus or by the IETF's resumable uploads. RFC 9530.
struct CreationDigests: Sendable {
  /// The digests of the bytes of this request; nil: it has none.
  let ofBody: BodyDigests?
  /// The digests of the whole file, to which later requests may bring bytes.
  let promised: [Digest.Algorithm: [UInt8]]?

  init(_ headers: HTTPHeaders, ofBody: BodyDigests?) throws(ServerError) {
    self.ofBody = ofBody
    promised = try BodyDigests.values(of: .representation, headers)
  }
}

extension Upload {
  /// Saves the digests of the whole that a request promises: those of its head, and those behind its body. Throws 400 for
  /// what is no digest, and where two digests contradict each other. Blocks for a small write where the upload is saved.
  func promise(
    _ promised: [Digest.Algorithm: [UInt8]]?, behindBody trailers: HTTPHeaders
  ) throws(ServerError) {
    let late = try BodyDigests.values(of: .representation, trailers)
    for values in [promised, late].compactMap({ $0 }) { try promise(values) }
  }
}
