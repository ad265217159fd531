/// The field `Upload-Outcome` in the answer that ends an upload: a Fullbore server says by it what came of the upload.
///
/// 201 says that a file is there, and where tus is spoken it is the only success; whether the file was there before with
/// the same bytes, no standard field tells.
package enum UploadOutcomeField {
  package static let name = "Upload-Outcome"
  /// The file had these bytes before: nothing was stored.
  package static let unchanged = "unchanged"
}
