extension ServerError {
  /// The reason for which a file is refused, as the value of a response's `Fullbore-Error`. The page has a text for each
  /// in the languages of its readers. The values do not change, and clients ignore those that they do not know.
  package enum Kind: String, CaseIterable, Sendable {
    /// The name is reserved for the server.
    case reservedName = "reserved-name"
    /// The name or the path is too long.
    case longName = "long-name"
    /// The name is taken; where the client may learn nothing of the folder, perhaps that of one of its folders.
    case nameTaken = "name-taken"
    /// A file has the name of one of the folders, so that no other name in it helps.
    case folderTaken = "folder-taken"
    /// The file is longer than `maxSize`.
    case tooLarge = "too-large"
    /// The file is longer than all files together may be.
    case beyondTotal = "beyond-total"
    /// The server receives nothing.
    case readOnly = "read-only"
    /// The server cannot write into the folder.
    case notWritable = "not-writable"
  }

  /// The refusal of a file that is longer than `limit`.
  static func tooLarge(_ limit: Int64) -> ServerError {
    ServerError(413, "an upload may have \(limit) bytes at most", kind: .tooLarge)
  }

  /// The name of the header field for `kind`.
  static let kindField = "Fullbore-Error"
}
