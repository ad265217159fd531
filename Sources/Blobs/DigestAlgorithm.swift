/// The name and size of a checksum. BlobCrypto's `Digest` computes it. Compare and store algorithms by `name`.
public struct DigestAlgorithm: Sendable, Hashable, CustomStringConvertible {
  /// Lower case without hyphens, for example `sha256`.
  public let name: String
  /// Size of a checksum in bytes.
  public let size: Int
  public var description: String { name }

  private init(_ name: String, size: Int) {
    self.name = name
    self.size = size
  }

  /// MD5, with 16 bytes. It detects accidents only, since anyone can forge it.
  public static let md5 = DigestAlgorithm("md5", size: 16)
  /// SHA-1, with 20 bytes. It detects accidents only, since it can be forged.
  public static let sha1 = DigestAlgorithm("sha1", size: 20)
  /// SHA-256, with 32 bytes.
  public static let sha256 = DigestAlgorithm("sha256", size: 32)
  /// SHA-384, with 48 bytes.
  public static let sha384 = DigestAlgorithm("sha384", size: 48)
  /// SHA-512, with 64 bytes.
  public static let sha512 = DigestAlgorithm("sha512", size: 64)
  /// BLAKE2b, with 64 bytes. It is not available on Apple's systems.
  public static let blake2b512 = DigestAlgorithm("blake2b512", size: 64)
  /// Detects accidental changes, not forgeries; ten times as fast as the others.
  public static let crc32c = DigestAlgorithm("crc32c", size: 4)
  /// The 64-bit checksum used by S3. It is the only one without processor instructions.
  public static let crc64nvme = DigestAlgorithm("crc64nvme", size: 8)
  /// XXH64, with 8 bytes, the first byte being the most significant. It detects accidents only, and so do the other two of xxHash.
  public static let xxh64 = DigestAlgorithm("xxh64", size: 8)
  /// XXH3 with 8 bytes.
  public static let xxh3 = DigestAlgorithm("xxh3", size: 8)
  /// XXH3 with 16 bytes. It is faster than memory can be read.
  public static let xxh128 = DigestAlgorithm("xxh128", size: 16)
  /// All algorithms that have a name here.
  public static let all = [md5, sha1, sha256, sha384, sha512, blake2b512, crc32c, crc64nvme, xxh64, xxh3, xxh128]
}
