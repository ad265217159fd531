import BlobHTTP

extension UploadError {
  /// Adds the advice to name dav+ if `answer`, the response to an OPTIONS request, comes from a WebDAV server: a folder may
  /// be missing there, which only the WebDAV protocol creates. `name`: the protocol that was named instead.
  func namingWebDAV(_ answer: HTTPResponse, insteadOf name: String) -> UploadError {
    guard WebDAV.isOffered(by: answer.headers) else { return self }
    var error = self
    error.message +=
      "; the server speaks WebDAV: with dav+ instead of \(name)+ before the URL, folders are made where they are missing"
    return error
  }
}

extension UploadContext {
  /// Like `namingWebDAV`, for a refused request that would create a file. Sends OPTIONS if the status may mean that the
  /// folder is missing.
  func hinted(_ error: UploadError, of request: HTTPRequest, by name: String) async -> UploadError {
    guard let status = error.status, [404, 405, 409].contains(status) else { return error }
    // Without a response to OPTIONS, the refusal stays as it is.
    guard let answer = try? await send(HTTPRequest("OPTIONS", request.url.folder)) else { return error }
    return error.namingWebDAV(answer, insteadOf: name)
  }
}
