import BlobHTTP

extension ModificationTime {
  /// The field that Nextcloud clients send; the response to it is `accepted`.
  static let field = "X-OC-MTime"

  /// nil if the field is missing, repeated, or not a valid time.
  init?(_ headers: HTTPHeaders) {
    guard let text = headers.item(Self.field) else { return nil }
    self.init(text.utf8)
  }
}
