import BlobCrypto
import BlobHTTP
import Blobs

/// One PUT of the whole file. An upload cannot be resumed: an interrupted one is sent again. RFC 9110 §9.3.4.
public struct PlainPut: ReplacingProtocol {
  public let name = "put"
  /// The body has a digest (SHA-256 or SHA-512) that the server verifies; nil: it has none. RFC 9530.
  public var checksum: Digest.Algorithm?
  /// The server replaces files without a condition, so a name is queried first, unless it may be overwritten. `discover`
  /// turns this off for a server that compares files itself.
  public var asksFirst = false
  /// `discover` asks whether the server compares files itself, returns digests and publishes groups.
  package var asksServer = false
  /// How long `discover` asks a server that gives no response.
  var patience = Duration.seconds(10)
  /// nil: the user chose PUT only. Otherwise a missing folder is created, if the server supports MKCOL: nginx does, but
  /// does not say so in its response to OPTIONS.
  var folders: DavFolders?
  let begun = BegunPuts()
  private let failed = FailedFolders()
  /// The server publishes the members of a group together.
  var publishesGroups = false

  /// Creates the protocol. `checksum` is the digest to send with each body; nil: none.
  public init(checksum: Digest.Algorithm? = nil) { self.checksum = checksum }

  public var traits: UploadTraits {
    var traits = UploadTraits(
      digests: checksum == nil ? .none : .ahead, queries: .ofOneFile, checksums: DigestField.algorithms.map(\.algorithm)
    )
    traits.publishesGroups = publishesGroups
    return traits
  }

  /// Sends no request unless the server must verify digests, or is to be asked what it can do: any server that supports PUT
  /// is sufficient.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    var put = self
    if asksFirst || asksServer {
      let fields = try await fieldsOfComparing(target, with)
      put.asksFirst = fields == nil && asksFirst
      put.publishesGroups = fields?[UploadGroup.field] != nil
    }
    if let checksum {
      let request = HTTPRequest("OPTIONS", target.endpoint)
      let response = try await with.send(request)
      if let refusal = UploadError(asking: request, response) { throw refusal }
      try ContentDigest.checkOffer(request, response, checksum, at: target.endpoint)
    }
    return UploadOffer(put, limits)
  }

  var limits: PartLimits { PartLimits(firstPart: .max) }

  /// Sends the whole file. 409 and 412 mean that the name has other bytes.
  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    guard let first, first.part.isLast, first.part.start == 0 else {
      preconditionFailure("a PUT is one part from the first byte to the last")
    }
    if asksFirst, !target.overwrite {
      let name = FoldedName(target.url)
      return try await with.names.alone(at: name) { (_) async throws(UploadError) in
        .finished(try await storeUnlessTaken(target, name, first.body, with))
      }
    }
    return .finished(try await store(target, first.body, with))
  }

  /// Sends a PUT without looking at the name first.
  func store(
    _ target: UploadTarget, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    var request = put(target)
    if checksum != nil { request.headers["Content-Digest"] = try await ContentDigest.field(of: body, checksum) }
    // A refusal for a missing folder may come after the last byte, and a pipe cannot be sent again.
    let isCostly = !body.canBeReadTwice || body.length ?? .max > DavFolders.small
    let asksAhead = folders != nil && isCostly
    if asksAhead { _ = try await folders?.makeMissing(request.url.folder, with) }
    // The name is queried before each time the file is sent, so the transport must not send it twice by itself.
    var response =
      asksFirst && !target.overwrite
      ? try await with.sendOnce(&request, body) : try await with.send(following: &request, body: body)
    // Another file is there than the one to replace: whoever has named that one asks again.
    if response.status == 412, target.replaced.isNamed { throw UploadError(request, response) }
    // Another client may make or delete the file meanwhile.
    for _ in 0..<HTTPRequest.mostConditions where target.overwrite && !target.replaced.isNamed {
      let isConditional = request.headers["If-Match"] != nil
      guard request.changeCondition(after: response) else { break }
      // Without the condition, a 409 may also mean that a folder is missing, or has the name.
      if !isConditional {
        guard body.canBeReadTwice, try await with.send(HTTPRequest("HEAD", request.url)).isSuccess else { break }
      }
      response = try await with.send(following: &request, body: body)
    }
    guard let result = result(of: response, to: request, for: target) else {
      throw try await refusal(of: request, response, for: target, body, mayMissFolder: !asksAhead, with)
    }
    // The file is not there yet.
    if result.group != .waiting { try await with.confirm(response, to: request, body, target) }
    return result
  }

  private func refusal(
    of request: HTTPRequest, _ response: HTTPResponse, for target: UploadTarget, _ body: BlobSlice, mayMissFolder: Bool,
    _ with: UploadContext
  ) async throws(UploadError) -> UploadError {
    var error = UploadError(creating: request, response)
    if let folders, mayMissFolder, [404, 409, 500].contains(response.status), body.canBeReadTwice,
      try await folders.makeMissing(request.url.folder, with)
    {
      error.recovery = .adapt
    }
    // A server refuses to replace a folder with one of these, or redirects to the name with a slash.
    if error.recovery == .giveUp, [301, 302, 307, 308, 405].contains(response.status) {
      error = await with.explained(error, at: request.url)
      if error.status == nil { return error }
    }
    // A WebDAV server responds 409 if the folder is missing. RFC 4918 §9.7.1. If the query fails, the refusal is
    // reported unchanged.
    if folders == nil, response.status == 409,
      (try? await with.remoteLength(of: request.url, expecting: nil)) == .missing
    {
      (error.status, error.cause) = (nil, MissingFolder())
      error.message =
        "\(request.method) \(request.url): answered 409, though no file has that name. Is its folder there? With dav+ "
        + "instead of put+ before the URL, it is made where it is missing"
    }
    if let folder = await missingFolder(of: request, response, with) {
      error.recovery = .giveUp
      // Each other file would be refused in the same way.
      if target.endpoint.folder.path.hasPrefix(folder.path) { error.side = .destination }
      (error.status, error.cause) = (nil, MissingFolder())
      error.message +=
        ", as some servers answer where the folder is missing: \(folder) is not there. With dav+ instead of put+ before the "
        + "URL, it is made where it is missing"
    }
    return folders == nil && response.status != 409 ? await with.hinted(error, of: request, by: name) : error
  }

  /// The missing folder because of which the server has answered 500 to a PUT; nil: it may have another reason. A Fullbore server, which needs no query before a PUT, makes folders itself.
  private func missingFolder(
    of request: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext
  ) async -> HTTPURL? {
    let folder = request.url.folder
    guard folders == nil, asksFirst, response.status == 500, failed.note(folder) else { return nil }
    return await with.missingFolder(folder)
  }

  private func result(of response: HTTPResponse, to request: HTTPRequest, for target: UploadTarget) -> UploadResult? {
    guard response.saysStored || target.group != nil && response.saysWaiting else { return nil }
    return UploadResult(location: target.url.description, reply: response.body).told(by: response, of: target.group)
  }

  private func put(_ target: UploadTarget) -> HTTPRequest {
    var request = HTTPRequest("PUT", target.url, ["Content-Type": target.contentType])
    request.headers.add(modificationTimeOf: target)
    request.replaceFile(of: target)
    if let group = target.group { request.headers[UploadGroup.field] = group.text }
    return request
  }

  public func held(by session: UploadSession, _ with: UploadContext) throws(UploadError) -> Held {
    throw UploadError(.restart, .destination, "a PUT cannot be asked how far it got")
  }

  /// Always throws with `.restart`, because a PUT has no further parts.
  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    throws(UploadError) -> Sent
  {
    throw UploadError(.restart, .destination, "a PUT has no further parts")
  }

  public func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext) -> UploadResult {
    UploadResult()
  }

  public func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError)
    -> Bool
  {
    try await with.isThere(target)
  }

  /// There is nothing to delete: an interrupted PUT was never published.
  public func abort(_ session: UploadSession, _ with: UploadContext) {}
}
