/// How the server is to encrypt what is made there: SSE-S3 or SSE-KMS. Without one the bucket's own setting counts.
/// https://docs.aws.amazon.com/AmazonS3/latest/userguide/serv-side-encryption.html
public struct S3Encryption: Sendable, Codable, Hashable {
  /// `AES256`, `aws:kms`.
  public var algorithm: String
  /// Of `aws:kms`; nil: Amazon's own key.
  public var keyID: String?

  public static let algorithms = ["AES256", "aws:kms"]

  public init(algorithm: String, keyID: String? = nil) {
    self.algorithm = algorithm
    self.keyID = keyID
  }
}
