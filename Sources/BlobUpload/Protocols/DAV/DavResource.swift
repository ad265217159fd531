import BlobHTTP
import Blobs

/// The answer of a WebDAV server to the question whether a name is that of a file or of a folder.
enum DavResource {
  case nothing, file, folder
}

extension UploadContext {
  /// Throws if a folder has the name of a file: MOVE with `Overwrite: T` would delete it with all that it contains. RFC
  /// 4918 §9.9.3. Also throws if the server does not tell a file from a folder. Returns whether a file has the name.
  ///
  /// A folder that another client puts in the place of a file between this call and the MOVE is not noticed: WebDAV has
  /// no condition for it.
  @discardableResult
  func refuseFolder(at url: HTTPURL) async throws(UploadError) -> Bool {
    switch try await resource(at: url) {
    case .nothing: return false
    case .file: return true
    case .folder: throw refusal(ofFolderAt: url)
    }
  }

  /// The error that says that a folder has the name, if the server says so, and this may be the reason for `error`;
  /// otherwise `error`.
  func explained(_ error: UploadError, at url: HTTPURL) async -> UploadError {
    if error.recovery != .giveUp || error.side == .cancelled || error.cause is TransportError { return error }
    // 401, 407, 421: the server refuses every request. 413, 507: the file is too large.
    if let status = error.status, [401, 407, 413, 421, 507].contains(status) { return error }
    // If the query fails, the refusal remains.
    if case .folder? = try? await resource(at: url) { return refusal(ofFolderAt: url) }
    return error
  }

  private func refusal(ofFolderAt url: HTTPURL) -> UploadError {
    UploadError(
      .giveUp, .file,
      "\(url): a folder has that name, and no file replaces a folder. To send into it, end the destination with a slash; "
        + "otherwise send the file under another name, with --name or --layout")
  }

  /// PROPFIND. A server that refuses it, as nginx does, is queried with HEAD.
  func resource(at url: HTTPURL) async throws(UploadError) -> DavResource {
    var request = HTTPRequest("PROPFIND", url, ["Depth": "0"])
    let response = try await send(following: &request)
    if let type = response.status == 207 ? XMLTree(response.body)?.resourceType : nil {
      return type["collection"] == nil ? .file : .folder
    }
    if [404, 410].contains(response.status) { return .nothing }
    let refusal = UploadError(request, response)
    // Some servers answer 500 to methods that they do not know.
    if case .retry = refusal.recovery, response.status != 500 { throw refusal }
    if response.refusesAll { throw refusal }
    return try await resourceByHead(at: url)
  }

  private func resourceByHead(at url: HTTPURL) async throws(UploadError) -> DavResource {
    var request = HTTPRequest("HEAD", url)
    let response = try await send(following: &request)
    // nginx redirects a folder's name to the one with a slash. Apache and Nextcloud name a folder's media type so.
    if request.url.path.hasSuffix("/") && !url.path.hasSuffix("/")
      || response.headers["Content-Type"]?.lowercased().hasPrefix("httpd/unix-directory") == true
    {
      return .folder
    }
    if [404, 410].contains(response.status) { return .nothing }
    // A page that lists a folder has neither field.
    let isFile = response.headers["ETag"] != nil || response.headers["Last-Modified"] != nil
    if response.isSuccess, isFile { return .file }
    let error = UploadError(request, response)
    if !response.isSuccess, case .retry = error.recovery { throw error }
    throw UploadError(
      .giveUp, .file,
      "\(url): whether a file or a folder has that name is not known, since the server does not tell by PROPFIND, and answers "
        + "\(response.status) to HEAD. Nothing is replaced, since a folder would be lost with all that it contains")
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
