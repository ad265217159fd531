/// An access key. Its description does not show the secrets.
public struct S3Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  /// The id of the key, which is no secret.
  public var accessKey: String
  /// The secret that signatures are made with.
  public var secretKey: String
  /// The session token of temporary credentials.
  public var sessionToken: String?

  /// Creates credentials. `sessionToken` nil: the key is permanent.
  public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }

  public var description: String { "S3Credentials(…)" }
  public var customMirror: Mirror { Mirror(self, children: []) }

  /// Texts that must not be shown.
  var secrets: [String] { [accessKey, secretKey, sessionToken].compactMap { $0 } }
}
