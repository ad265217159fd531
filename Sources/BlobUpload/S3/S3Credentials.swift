/// An access key. Shown by its description, it shows nothing.
public struct S3Credentials: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
  public var accessKey: String
  public var secretKey: String
  /// Of temporary credentials.
  public var sessionToken: String?

  public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }

  public var description: String { "S3Credentials(…)" }
  public var customMirror: Mirror { Mirror(self, children: []) }

  /// Whether any of these is in `text`.
  func areIn(_ text: String) -> Bool {
    [accessKey, secretKey, sessionToken].contains { $0.map { !$0.isEmpty && text.contains($0) } ?? false }
  }
}
