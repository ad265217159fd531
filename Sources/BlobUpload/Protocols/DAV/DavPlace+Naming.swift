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
  /// tried without replacing. If the server then reports that the name is taken, a file must exist there.
  func giveName(to temporary: HTTPURL, _ folders: DavFolders, _ with: UploadContext) async throws(UploadError) {
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
    }
    conditions.note(wasFile: true)
    try await move(temporary, to: url, overwrites: true, with)
  }
}
