import BlobHTTP

/// `POST` of a form to a folder: each of its files is published there, completely or not at all. RFC 7578.
enum FormRoutes {
  /// Returns nil if the request has no form.
  static func plan(_ call: RoutedRequest, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> Plan? {
    let boundary: [UInt8]
    do throws(MultipartError) {
      guard let found = try MultipartBoundary.find(call.headers["Content-Type"]) else { return nil }
      boundary = found
    } catch {
      throw ServerError(error)
    }
    try checkSite(call)
    if !isFolder, !path.isRoot, try !call.showsFolder(at: path) {
      // 409 would mean that the name is taken, so that a client would offer to replace the file.
      throw ServerError(400, "forms are for a folder's URL, which ends with a slash: \(path) is no such URL")
    }
    // A form does not replace files, so preconditions on a version of the folder do not apply.
    let rule = try PutRoutes.rule(ofPost: call.headers, nil)
    let digests = try BodyDigests.ofHTTP(call.headers, isWhole: true)
    return .receive(
      FormReceiver(boundary, path, rule, FormResponse(call, path), digests?.isPromised == true ? digests : nil, call))
  }

  /// Checks `Sec-Fetch-Site`, in addition to `Origin`, which `HostRule` has checked: browsers let pages send forms, and
  /// bodies of some media types by POST, to other sites without permission. Fetch Metadata §2.4.
  static func checkSite(_ call: RoutedRequest) throws(ServerError) {
    guard let site = call.headers["Sec-Fetch-Site"], !["same-origin", "none"].contains(site) else { return }
    let origins = call.options.allowedOrigins
    if origins.contains("*") || call.headers["Origin"].map(origins.contains) == true { return }
    throw ServerError(403, "pages of other sites may not send forms to this server")
  }
}

extension ServerError {
  init(_ error: MultipartError) { self.init(error.status, "the form cannot be read: \(error)") }
}
