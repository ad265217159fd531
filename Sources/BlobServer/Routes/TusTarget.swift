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

  /// Throws what keeps bytes of this length from being published: a name that is taken, or a folder that the server may
  /// not write.
  func admit(length: Int64?, in folder: ServedPath, _ service: Service) throws(ServerError) {
    try existing.admit(service.store.target(at: path, in: folder), at: path ?? folder, length: length)
  }

  /// As `admit`, for a final upload. Its bytes have come with its parts, so publication answers for the folder: by a status
  /// that lets the client ask again.
  func admitFinal(length: Int64?, in folder: ServedPath, _ service: Service) throws(ServerError) {
    let item = try service.store.target(at: path, in: folder).item
    if let item { try existing.admit(item, at: path ?? folder, length: length) }
  }

  /// As `admit`, for a part, whose own name is never published: only the folder counts.
  func admitPart(in folder: ServedPath, _ service: Service) throws(ServerError) {
    if let refusal = try service.store.target(at: nil, in: path?.parent ?? folder).refusal { throw refusal }
  }
}
