/// How the server encrypts new objects: SSE-S3 or SSE-KMS. Without this the bucket's setting applies.
/// https://docs.aws.amazon.com/AmazonS3/latest/userguide/serv-side-encryption.html
public struct S3Encryption: Sendable, Codable, Hashable {
  /// `AES256` or `aws:kms`.
  public var algorithm: String
  /// The key for `aws:kms`; nil: Amazon's own key.
  public var keyID: String?

  /// The values that `algorithm` may have.
  public static let algorithms = ["AES256", "aws:kms"]

  /// Creates a setting for new objects. `keyID` applies to `aws:kms` only.
  public init(algorithm: String, keyID: String? = nil) {
    self.algorithm = algorithm
    self.keyID = keyID
  }
}
