import BlobCrypto
import BlobHTTP
import Blobs

extension UploadRecord {
  /// Adds the digests of the whole file from a request to those of earlier requests. Throws 400 if they contradict each
  /// other.
  mutating func promise(_ digests: [Digest.Algorithm: [UInt8]]) throws(ServerError) {
    if digests.isEmpty { return }
    var values = digest.flatMap { DigestField.values($0) } ?? [:]
    for (algorithm, value) in digests {
      let earlier = values.updateValue(value, forKey: algorithm)
      if let earlier, earlier != value { throw BodyDigests.mismatch(.representation, algorithm) }
    }
    digest = DigestField.text(values)
  }
}

/// The digests in a request that creates an upload, by tus or by IETF resumable uploads. RFC 9530.
struct CreationDigests: Sendable {
  /// The digests of this request's body; nil: it has none.
  let ofBody: BodyDigests?
  /// The digests of the whole file, to which later requests may add bytes.
  let promised: [Digest.Algorithm: [UInt8]]?

  init(_ headers: HTTPHeaders, ofBody: BodyDigests?) throws(ServerError) {
    self.ofBody = ofBody
    promised = try BodyDigests.values(of: .representation, headers)
  }
}
