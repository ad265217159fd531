/// An access key. Its description does not show the secrets.
public struct S3Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  public var accessKey: String
  public var secretKey: String
  /// The session token of temporary credentials.
  public var sessionToken: String?

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
