import BlobHTTP
import Blobs

// A folder that has the name of the file.
extension DavPlace {
  /// Throws if a folder has the name: MOVE with `Overwrite: T` would delete it with all that it contains. RFC 4918 §9.9.3.
  func refuseFolder(_ with: UploadContext) async throws(UploadError) {
    guard try await isFolder(with) else { return }
    throw UploadError(
      .giveUp, .file,
      "\(url): a folder has that name, and no file replaces a folder. To send into it, end the destination with a slash; "
        + "otherwise send the file under another name, with --name or --layout")
  }

  /// Like `refuseFolder`, if a folder of the name may be the reason for `error`, which is final.
  func refuseFolder(explaining error: UploadError, _ with: UploadContext) async throws(UploadError) {
    if error.recovery != .giveUp || error.side == .cancelled { return }
    // 401, 407, 421: the server refuses every request.
    if let status = error.status, [401, 407, 421].contains(status) { return }
    try await refuseFolder(with)
  }

  /// PROPFIND. A server that refuses it, as nginx does, is queried with HEAD: nginx redirects a folder's name to the one
  /// with a slash.
  private func isFolder(_ with: UploadContext) async throws(UploadError) -> Bool {
    var request = HTTPRequest("PROPFIND", url, ["Depth": "0"])
    let response = try await with.send(following: &request)
    if let type = response.status == 207 ? XMLTree(response.body)?.resourceType : nil {
      return type["collection"] != nil
    }
    if [404, 410].contains(response.status) { return false }
    let refusal = UploadError(request, response)
    if case .retry = refusal.recovery { throw refusal }
    if response.refusesAll { throw refusal }
    request = HTTPRequest("HEAD", url)
    let there = try await with.send(following: &request)
    let error = UploadError(request, there)
    if !there.isSuccess, case .retry = error.recovery { throw error }
    // Apache and Nextcloud name a folder's media type so.
    let isOfFolder = there.headers["Content-Type"]?.lowercased().hasPrefix("httpd/unix-directory") == true
    return there.isSuccess && isOfFolder || request.url.path.hasSuffix("/") && !url.path.hasSuffix("/")
  }
}

extension XMLTree {
  /// The type of the first resource in a multistatus response. RFC 4918 §14.16, §15.9.
  fileprivate var resourceType: XMLTree? {
    for state in self["response"]?.all("propstat") ?? [] {
      if let type = state["prop"]?["resourcetype"] { return type }
    }
    return nil
  }
}
