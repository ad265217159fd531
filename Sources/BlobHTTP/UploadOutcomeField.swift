/// The field `Upload-Outcome` in a Fullbore server's final response to an upload: the result of the upload.
///
/// Status 201 says that the file exists, and in tus it is the only success status. No standard field says whether the
/// file already existed with the same bytes.
package enum UploadOutcomeField {
  package static let name = "Upload-Outcome"
  /// The file already had these bytes, so nothing was stored.
  package static let unchanged = "unchanged"
  /// All bytes have arrived, and the file gets its name once all members of its group have.
  package static let waiting = "waiting"
}
