import BlobHTTP

/// The cause of an `UploadError`: the server deletes no uploads, and keeps each until it expires, so a retry is
/// useless.
public struct KeepsUploads: Error, Sendable {}

extension HTTPResponse {
  /// Whether a response to DELETE says that the resource no longer exists. 202 promises a deletion that may not happen,
  /// and 207 reports several, some of which may have failed. RFC 9110 §9.3.5, RFC 4918 §9.6.1. A success with a page
  /// comes from a portal or a login page, which respond to any request like that.
  var saysDeleted: Bool { [204, 404, 410].contains(status) || status == 200 && !isPage }

  private var isPage: Bool {
    let type = headers["Content-Type"]?.lowercased() ?? ""
    return type.hasPrefix("text/html") || type.hasPrefix("application/xhtml")
  }
}

extension UploadError {
  /// The error for a response that does not confirm the deletion of an upload. It concerns this upload only: the server
  /// may delete others.
  init(deleting request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response)
    if response.isSuccess {
      message =
        "\(request.method) \(request.url): answered \(response.status)\(response.status == 200 ? " with a page" : "")"
        + ", which does not say that it is deleted"
      // The server may delete it later.
      if response.status == 202 { recovery = .retry(after: response.headers.retryAfter) }
    }
    if !response.refusesAll { side = .file }
  }
}

extension UploadError {
  /// For the error of a deletion: the server has responded that it never deletes such an upload.
  var refusesDeletion: Bool { cause is KeepsUploads || recovery == .giveUp && side == .file && status != nil }
}

extension UploadProtocol {
  /// Whether the server says that it does not know the upload, or no longer. A 403 does not tell.
  func isGone(_ session: UploadSession, _ with: UploadContext) async -> Bool {
    do {
      _ = try await held(by: session, with)
      return false
    } catch {
      return error.status.map { [404, 410].contains($0) } ?? false
    }
  }
}
