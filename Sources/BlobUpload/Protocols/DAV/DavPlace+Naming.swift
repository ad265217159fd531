import BlobHTTP

extension DavPlace {
  /// MOVE of `temporary` to the file's own name. It may replace a file under the name if `overwrites` is set, and never a
  /// folder.
  ///
  /// Some servers decode `Destination` twice, and truncate the name at a character that starts a query: they would
  /// replace the file with the truncated name. A name with such characters, and one that is free, is therefore first
  /// tried without replacing. If the server then reports that the name is taken, a file must exist there.
  func giveName(to temporary: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    if !overwrites { return try await move(temporary, to: url, overwrites: false, with) }
    let replacesFile = try await refuseFolder(with)
    if !replacesFile || !isPlain {
      do {
        return try await move(temporary, to: url, overwrites: false, with)
      } catch {
        guard error.status == 412 else { throw error }
      }
      guard try await refuseFolder(with) else {
        if isPlain { throw takenByNothing }
        throw UploadError(
          .giveUp, .file,
          "\(url): the server says that the name is taken, and nothing is there: it would replace a file of another name. "
            + Self.refusesSuchNames)
      }
    }
    try await move(temporary, to: url, overwrites: true, with)
  }
}
