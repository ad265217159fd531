import BlobHTTP

/// The target of an upload, from its metadata.
struct TusTarget: Sendable {
  /// nil: the upload's id becomes the file name.
  let path: ServedPath?
  private(set) var existing: ExistingRule
  /// The value of `Upload-Metadata` as sent.
  let metadata: String
  /// From `mtime`, in seconds since 1970; an invalid value is ignored.
  let modified: ModificationTime?
  /// From `group`, `group-size` and `group-position`; nil: the upload is published by itself, as it always
  /// is where the store offers no groups.
  let group: UploadGroup?

  init(_ call: RoutedRequest, _ folder: ServedPath) throws(ServerError) {
    metadata = call.headers["Upload-Metadata"] ?? ""
    let values = try Tus.metadata(metadata)
    existing = try Self.rule(values)
    modified = values["mtime"].flatMap { ModificationTime($0) }
    let groupID = call.service.store.abilities.groups == nil ? nil : values[UploadGroup.key]
    group = try groupID.map { (id) throws(ServerError) in
      func number(_ key: String) -> Int64 { values[key].flatMap { Int64(String(decoding: $0, as: UTF8.self)) } ?? 0 }
      return try UploadGroup.needed(
        UploadGroup(
          id: String(decoding: id, as: UTF8.self), members: number(UploadGroup.membersKey),
          position: number(UploadGroup.positionKey)))
    }
    path = if let name = Self.name(values) { try folder.appending(name) } else { nil }
  }

  /// `overwrite true` permits replacing a file. `replaces` names the only one that may be replaced by its ETag, or is empty if
  /// none may be there.
  private static func rule(_ values: Tus.Metadata) throws(ServerError) -> ExistingRule {
    guard values["overwrite"] == Array("true".utf8) else { return .keep }
    guard let tag = values["replaces"] else { return .replace }
    if tag.isEmpty { return .mustBeNew }
    let isTag = tag.count > 1 && tag.first == UInt8(ascii: "\"") && tag.last == UInt8(ascii: "\"")
    // A record has the tag on one line.
    guard isTag, tag.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw ServerError(400, "replaces in Upload-Metadata must be an ETag with its quotes, or empty")
    }
    return .replaceVersion(StoredVersion(etag: String(decoding: tag, as: UTF8.self)))
  }

  /// `relativePath`, or else `filename`. Uppy sends `relativePath null` for files that were not in a folder.
  static func name(_ values: Tus.Metadata) -> [UInt8]? {
    if let path = values["relativePath"], !path.isEmpty, path != Array("null".utf8) { return path }
    return values["filename"].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Throws if a file of this length cannot be published: its name is taken, or the server may not write to the folder.
  /// Otherwise the rule is bound to the file that is there now.
  mutating func admit(length: Int64?, in folder: ServedPath, _ service: Service) throws(ServerError) {
    let state = try service.store.target(at: path, in: folder)
    existing = existing.bound(to: state.item)
    try existing.admit(state, at: path ?? folder, length: length)
  }

  /// Like `admit`, for a final upload, without a check of the folder. Its bytes have already arrived with its parts, so
  /// the folder is checked at publication, with a status that lets the client try again.
  mutating func admitFinal(length: Int64?, in folder: ServedPath, _ service: Service) throws(ServerError) {
    var state = try service.store.target(at: path, in: folder)
    existing = existing.bound(to: state.item)
    state.refusal = nil
    try existing.admit(state, at: path ?? folder, length: length)
  }

  /// Like `admit`, for a part. Its own name is never published, so only the folder is checked.
  func admitPart(in folder: ServedPath, _ service: Service) throws(ServerError) {
    if let refusal = try service.store.target(at: nil, in: path?.parent ?? folder).refusal { throw refusal }
  }
}

extension UploadGroup {
  /// The group in the field of a request; nil: there is none, or the store offers no groups. Throws 400 if it is invalid.
  static func of(_ call: RoutedRequest) throws(ServerError) -> UploadGroup? {
    guard call.service.store.abilities.groups != nil, let field = call.headers[UploadGroup.field] else { return nil }
    return try needed(UploadGroup(field))
  }

  fileprivate static func needed(_ group: UploadGroup?) throws(ServerError) -> UploadGroup {
    if let group { return group }
    throw ServerError(
      400,
      "a group needs an id of up to 64 letters, digits, dashes and underscores, its number of members, at most \(most), and the "
        + "position of this one among them")
  }
}
