import BlobHTTP

extension ModificationTime {
  /// As clients of Nextcloud send it, and are answered `accepted`.
  static let field = "X-OC-MTime"

  /// nil when the field is missing, stands twice, or is no time.
  init?(_ headers: HTTPHeaders) {
    guard let text = headers.item(Self.field) else { return nil }
    self.init(text.utf8)
  }
}
