import BlobCrypto
import Blobs

/// A digest, with the name of its algorithm. Digests of different algorithms are never equal.
struct DigestValue: Sendable, Hashable {
  var algorithm: Digest.Algorithm
  var bytes: [UInt8]

  init(_ algorithm: Digest.Algorithm, _ bytes: [UInt8]) { (self.algorithm, self.bytes) = (algorithm, bytes) }

  /// nil: not all bytes of the source were read.
  init?(_ source: HashingSource) {
    guard let value = source.value else { return nil }
    self.init(source.algorithm, value)
  }
}
