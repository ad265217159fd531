import BlobHTTP

// The drafts of resumable uploads differ, and each has its own "interop version".
extension IETFResumable {
  package func request(_ method: String, _ url: HTTPURL) -> HTTPRequest {
    // `Connection` makes proxies remove `Upload-Interim`. A server that sees the second field alone knows that a proxy is
    // between, which may not understand interim responses. RFC 9110 §7.6.1.
    HTTPRequest(
      method, url,
      ["Upload-Draft-Interop-Version": Self.version, "Connection": "Upload-Interim", "Upload-Interim": "?1"])
  }

  /// Interop versions of older drafts, newest first; some servers support only one of them.
  private static let olderVersions = ["7", "6", "5", "4", "3"]

  /// Called after a refused creation. Returns an error if the server supports another version of the protocol; nil: it
  /// does not, or does not say so.
  func otherVersion(
    _ request: HTTPRequest, _ response: HTTPResponse, _ target: UploadTarget, _ with: UploadContext
  ) async -> UploadError? {
    guard [400, 405, 412, 415, 426, 501].contains(response.status), response.headers["Upload-Complete"] == nil else {
      return nil
    }
    // The file to replace has changed.
    if response.status == 412, target.replaced.isNamed { return nil }
    var spoken = response.headers["Upload-Draft-Interop-Version"]
    var speaksTus = response.headers["Tus-Resumable"] != nil
    for version in [Self.version] + Self.olderVersions where spoken == nil {
      let question = HTTPRequest("OPTIONS", target.endpoint, ["Upload-Draft-Interop-Version": version])
      // Without a response, the caller reports the refusal itself.
      guard let answer = try? await with.send(question), answer.isSuccess else { return nil }
      speaksTus = speaksTus || answer.headers["Tus-Version"] != nil
      // Servers report limits only to clients that name a supported version.
      if answer.headers["Upload-Limit"] != nil { spoken = version }
    }
    guard let spoken, spoken != Self.version, !with.secrets().isOne(in: spoken.utf8) else { return nil }
    let advice =
      speaksTus ? "It also speaks tus: put tus+ before the URL" : "Name another protocol: put+ before the URL"
    return UploadError(
      .giveUp, .destination,
      "\(request.method) \(request.url): the server speaks interop version \(spoken.prefix(8)) of resumable uploads, and "
        + "fullbore speaks version \(Self.version) (\(response.summary)). \(advice)")
  }

  /// The protocol for a server that has reported its limits.
  func offered(_ headers: HTTPHeaders) -> IETFResumable {
    var uploadProtocol = self
    uploadProtocol.isOffered = true
    uploadProtocol.publishesGroups = headers[UploadGroup.field] != nil
    return uploadProtocol
  }

  /// The error if the server calls an upload complete that was announced as incomplete (`Upload-Complete: ?0`).
  func tooSoon(_ request: HTTPRequest, _ response: HTTPResponse) -> UploadError {
    UploadError(
      .restart, .file,
      "\(request.method) \(request.url): the server says that the upload is complete, and was told that more would come",
      status: response.status)
  }
}
