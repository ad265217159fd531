import BlobHTTP

extension DavPlace {
  /// MOVE of `temporary` to the file's own name, which may replace what has the name where `overwrites` is set.
  ///
  /// Some servers take `Destination` apart once more, and cut a name where another URL would have a query: they would replace
  /// the file that has the beginning of the name. So a name with such characters is first tried without replacing anything,
  /// and what the server says is there must be there.
  func giveName(to temporary: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    if overwrites, !isPlain {
      do {
        return try await move(temporary, to: url, overwrites: false, with)
      } catch {
        guard error.status == 412 else { throw error }
      }
      let response = try await with.send(HTTPRequest("HEAD", url))
      guard response.isSuccess else {
        throw UploadError(
          .giveUp, .file,
          "\(url): the server says that the name is taken, and nothing is there: it would replace a file of another name. "
            + Self.refusesSuchNames)
      }
    }
    try await move(temporary, to: url, overwrites: overwrites, with)
  }
}
