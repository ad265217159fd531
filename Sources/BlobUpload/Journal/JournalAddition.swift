/// What an upload was added with, for the process that begins it.
package struct JournalAddition: Sendable, Hashable, Codable {
  /// `UploadTarget.metadata`.
  package var metadata: [String: String]
  /// The media type of the file.
  package var contentType: String
  /// `Validator.version` of the source; nil: its versions cannot be told apart.
  package var version: String?
  /// The identifier of the background uploader that goes on with the upload; nil: any of them may, because none has added it
  /// or an earlier version has written this.
  package var uploader: String?

  package init(
    metadata: [String: String], contentType: String, version: String?, uploader: String? = nil
  ) {
    self.metadata = metadata
    self.contentType = contentType
    self.version = version
    self.uploader = uploader
  }
}
