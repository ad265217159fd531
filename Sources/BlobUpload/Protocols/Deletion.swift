import BlobHTTP

/// The server deletes no uploads, and keeps each until it expires: there is nothing to be tried again. A cause of
/// `UploadError`.
public struct KeepsUploads: Error, Sendable {}

extension HTTPResponse {
  /// The answer to a DELETE says that what was there is gone, now or before. 202 promises a deletion that may come to nothing,
  /// and 207 tells of several, of which some may have failed. RFC 9110 §9.3.5, RFC 4918 §9.6.1. A success with a page is that
  /// of a portal or a login, which answer any request so.
  var saysDeleted: Bool { [204, 404, 410].contains(status) || status == 200 && !isPage }

  private var isPage: Bool {
    let type = headers["Content-Type"]?.lowercased() ?? ""
    return type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
  }
}

extension UploadError {
  /// An answer that does not say that an upload is deleted. A refusal is one of this request: the server may take others.
  init(deleting request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response)
    if response.isSuccess {
      message =
        "\(request.method) \(request.url): answered \(response.status)\(response.status == 200 ? " with a page" : "")"
        + ", which does not say that it is deleted"
      // It may be deleted by and by.
      if response.status == 202 { recovery = .retry(after: response.headers.retryAfter) }
    }
    if !response.refusesAll { side = .file }
  }
}

extension UploadError {
  /// As the error of a deletion: the server has answered that it deletes nothing of the kind, now or later.
  var refusesDeletion: Bool { cause is KeepsUploads || recovery == .giveUp && side == .file && status != nil }
}

extension UploadProtocol {
  /// Whether the server says that it does not know the upload (any more). A 403 does not tell.
  func isGone(_ session: UploadSession, _ with: UploadContext) async -> Bool {
    do {
      _ = try await held(by: session, with)
      return false
    } catch {
      return error.status.map { [404, 410].contains($0) } ?? false
    }
  }
}
