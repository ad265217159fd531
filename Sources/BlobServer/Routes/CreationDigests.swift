import BlobCrypto
import BlobHTTP
import Blobs

extension UploadRecord {
  /// Adds the digests of the whole that a request promises to those that were promised before. Throws 400 where the two
  /// contradict each other.
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
