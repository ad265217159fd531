import BlobHTTP

extension DavPlace {
  /// MOVE of `temporary` to the file's own name. It may replace a file under the name if `overwrites` is set, and never a
  /// folder.
  ///
  /// On a server that implements `Overwrite: F`, a new name costs this MOVE only. Any other server is queried for the
  /// name before.
  ///
  /// Some servers decode `Destination` twice, and truncate the name at a character that starts a query: they would
  /// replace the file with the truncated name. A name with such characters, and one that is free, is therefore first
  /// tried without replacing. If the server then reports that the name is taken, a file must exist there, and nothing under
  /// the other names that such a server may mean.
  mutating func giveName(
    to temporary: HTTPURL, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) {
    if !overwrites { return try await move(temporary, to: url, overwrites: false, with) }
    let conditions = folders.conditions
    var isFile = false
    if !conditions.areHeeded || conditions.expectsFile { isFile = try await with.refuseFolder(at: url) }
    if !isFile || !isPlain {
      do throws(UploadError) {
        try await move(temporary, to: url, overwrites: false, with)
        return conditions.note(wasFile: false)
      } catch {
        guard error.status == 412 else { throw error }
      }
      guard try await with.refuseFolder(at: url) else { throw takenByNothing }
      for other in misreadings where try await with.resource(at: other) != .nothing {
        throw UploadError(
          .giveUp, .file,
          "\(url): nothing is replaced, since the server may mean \(other), which is there too. \(Self.refusesSuchNames)"
        )
      }
    }
    conditions.note(wasFile: true)
    try await replace(url, with: temporary, with)
  }

  /// The URLs that a server may take `Destination` for, if it decodes the path again, or cuts it where a query, a fragment or
  /// parameters begin. Empty for a plain name.
  private var misreadings: [HTTPURL] {
    if isPlain { return [] }
    let path = PercentCoding.decoded(url.path.utf8)
    var found: Set<[UInt8]> = []
    for text in [path, PercentCoding.decoded(path)] {
      for ends in ["", "?#", "?#;"] { found.insert(Array(text.prefix { !ends.utf8.contains($0) })) }
    }
    return found.compactMap { $0 == path || $0.contains(0) ? nil : HTTPURL(url.origin + HTTPURL.encode($0)) }
  }
}
