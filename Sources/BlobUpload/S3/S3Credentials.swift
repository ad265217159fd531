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

  /// Whether `text` contains one of these values.
  func areIn(_ text: String) -> Bool {
    [accessKey, secretKey, sessionToken].contains { $0.map { !$0.isEmpty && text.contains($0) } ?? false }
  }
}
