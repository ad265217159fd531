import BlobHTTP
import BlobCrypto
import Blobs

/// What a request that creates an upload says of its bytes, in either dialect. RFC 9530.
struct CreationDigests: Sendable {
  let ofBody: BodyDigests?
  /// Of the whole, also of what other requests bring.
  let promised: [Digest.Algorithm: [UInt8]]?

  /// For a creation by the IETF's resumable uploads. `isWhole`: the body is all there is.
  init(_ headers: HTTPHeaders, isWhole: Bool) throws(ServerError) {
    ofBody = try BodyDigests.ofHTTP(headers, isWhole: isWhole)
    promised = try BodyDigests.values(of: .representation, headers)
  }

  /// For a creation by tus. `isWhole`: the body is all there is.
  init(ofTus headers: HTTPHeaders, isWhole: Bool) throws(ServerError) {
    ofBody = try BodyDigests.ofTus(headers, isWhole: isWhole)
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
