/// How the server encrypts new objects: SSE-S3 or SSE-KMS. Without this the bucket's setting applies.
/// https://docs.aws.amazon.com/AmazonS3/latest/userguide/serv-side-encryption.html
public struct S3Encryption: Sendable, Codable, Hashable {
  /// `AES256` or `aws:kms`.
  public var algorithm: String
  /// The key for `aws:kms`; nil: Amazon's own key.
  public var keyID: String?

  public static let algorithms = ["AES256", "aws:kms"]

  public init(algorithm: String, keyID: String? = nil) {
    self.algorithm = algorithm
    self.keyID = keyID
  }
}
