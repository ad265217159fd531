/// The name of a checksum and its size. BlobCrypto's `Digest` computes it. Compare and store it by `name`.
public struct DigestAlgorithm: Sendable, Hashable, CustomStringConvertible {
  /// Lower case, without hyphens: `sha256`.
  public let name: String
  /// Bytes of a checksum.
  public let size: Int
  public var description: String { name }

  private init(_ name: String, size: Int) {
    self.name = name
    self.size = size
  }

  public static let md5 = DigestAlgorithm("md5", size: 16)
  public static let sha1 = DigestAlgorithm("sha1", size: 20)
  public static let sha256 = DigestAlgorithm("sha256", size: 32)
  public static let sha384 = DigestAlgorithm("sha384", size: 48)
  public static let sha512 = DigestAlgorithm("sha512", size: 64)
  public static let blake2b512 = DigestAlgorithm("blake2b512", size: 64)
  /// Finds accidents, not forgeries; it is ten times as fast as the others.
  public static let crc32c = DigestAlgorithm("crc32c", size: 4)
  /// S3's own checksum of 64 bits. It is the only one that the processor does not help with.
  public static let crc64nvme = DigestAlgorithm("crc64nvme", size: 8)
  public static let all = [md5, sha1, sha256, sha384, sha512, blake2b512, crc32c, crc64nvme]
}
