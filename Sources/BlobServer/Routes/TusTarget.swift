import BlobHTTP

/// Where an upload is to be published, as its metadata says.
struct TusTarget: Sendable {
  /// nil: the upload's id becomes the name.
  let path: ServedPath?
  let existing: ExistingRule
  /// `Upload-Metadata` as it was sent.
  let metadata: String
  /// `mtime`: seconds since 1970; what is none is ignored.
  let modified: ModificationTime?

  init(_ call: Call, _ folder: ServedPath) throws(ServerError) {
    metadata = call.headers["Upload-Metadata"] ?? ""
    let values = try Tus.metadata(metadata)
    existing = values["overwrite"] == Array("true".utf8) ? .replace : .keep
    modified = values["mtime"].flatMap { ModificationTime($0) }
    path = if let name = Self.name(values) { try folder.appending(name) } else { nil }
  }

  /// `relativePath`, else `filename`. Uppy sends `relativePath null` for files that were not in a folder.
  private static func name(_ values: Tus.Metadata) -> [UInt8]? {
    if let path = values["relativePath"], !path.isEmpty, path != Array("null".utf8) { return path }
    return values["filename"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Throws what keeps bytes of this length away from a name that is taken.
  func admit(length: Int64?, _ service: Service) throws(ServerError) {
    guard let path, let item = try service.store.item(at: path) else { return }
    try existing.admit(item, at: path, length: length)
  }
}
