import BlobHTTP
import Blobs

/// What has the name that a file is to have.
enum NameInUse: Sendable {
  /// The very bytes that are to be sent; with the fields of the answer to HEAD.
  case sameBytes(HTTPHeaders)
  /// Nothing: it can be written to.
  case nothing
  /// The server does not say; its answer.
  case unknown(UploadError)
}

extension UploadContext {
  /// Looks at the name that `body` is to have (HEAD), and compares what is there with it (GET). Throws with status 409 if
  /// there are other bytes. `length`: that of the body, where it is known by other means.
  func nameInUse(
    _ url: HTTPURL, by body: BlobSlice, length: Int64?
  ) async throws(UploadError) -> NameInUse {
    let request = HTTPRequest("HEAD", url)
    let response = try await send(request)
    if [404, 410].contains(response.status) { return .nothing }
    guard response.status == 200 else {
      var error = UploadError(request, response)
      if response.isSuccess { error.message += " (this does not say whether a file has that name)" }
      return .unknown(error)
    }
    if let size = response.headers.bytes("Content-Length"), let length = body.length ?? length, size != length {
      throw UploadError(
        .giveUp, .file, "\(url): another file of \(size) bytes has that name, and this one has \(length)", status: 409)
    }
    do {
      try await compare(body, with: url)
    } catch {
      // A connection that broke says nothing about the bytes.
      guard error.isDifference else { throw error }
      throw UploadError(.giveUp, .file, "\(url): another file has that name (\(error.message))", status: 409)
    }
    return .sameBytes(response.headers)
  }
}

extension UploadError {
  /// What was read back differs from what was sent.
  var isDifference: Bool { recovery == .giveUp && side == .file && status == nil }
}
