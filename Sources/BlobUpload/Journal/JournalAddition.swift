/// The values with which an app added an upload. The process that begins the upload needs them.
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
  /// The source was added while an upload of it had ended or was running: there is one more to be made after that, also
  /// if it is of the same version, because another source has the place by then. nil: an earlier version has written this, or
  /// it was not.
  package var isAgain: Bool?
  /// Counts the additions to a journal: the uploads to one place are made in this order. nil: an earlier version has written
  /// this.
  package var number: Int64?

  package init(
    metadata: [String: String], contentType: String, version: String?, uploader: String? = nil,
    isAgain: Bool? = nil, number: Int64? = nil
  ) {
    self.metadata = metadata
    self.contentType = contentType
    self.version = version
    self.uploader = uploader
    self.isAgain = isAgain
    self.number = number
  }
}
