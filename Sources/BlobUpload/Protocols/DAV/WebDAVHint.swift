import BlobHTTP

extension UploadError {
  /// With the advice to name dav+ where `answer`, to an OPTIONS request, is that of a WebDAV server: there a folder may be missing,
  /// which only WebDAV makes. `name`: the protocol that was named instead.
  func namingWebDAV(_ answer: HTTPResponse, insteadOf name: String) -> UploadError {
    guard WebDAV.isOffered(by: answer.headers) else { return self }
    var error = self
    error.message +=
      "; the server speaks WebDAV: with dav+ instead of \(name)+ before the URL, folders are made where they are missing"
    return error
  }
}

extension UploadContext {
  /// As `namingWebDAV`, for the refusal of a request that makes a file. It asks the server, where the status may mean that the folder
  /// is missing.
  func hinted(_ error: UploadError, of request: HTTPRequest, by name: String) async -> UploadError {
    guard let status = error.status, [404, 405, 409].contains(status) else { return error }
    // Where this cannot be asked, the refusal stands as it is.
    guard let answer = try? await send(HTTPRequest("OPTIONS", request.url.folder)) else { return error }
    return error.namingWebDAV(answer, insteadOf: name)
  }
}
