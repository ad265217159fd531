import BlobCrypto
import BlobHTTP
import Blobs

/// tus 1.0.0: core, creation, creation-with-upload, creation-defer-length, termination, expiration, checksum,
/// concatenation, and POST in place of methods that do not get through.
public struct Tus: ReplacingProtocol {
  public let name = "tus"
  package static let version = "1.0.0"
  package static let bodyType = "application/offset+octet-stream"

  /// A file up to this many bytes is sent with the request that creates the upload, if the server supports that.
  public var wholeUpTo: Int64

  /// Each request has the digest of its body, and the server stores the body only if it matches; nil: no digests.
  /// Such parts have 8 MiB unless another size is requested.
  public var checksum: Digest.Algorithm?

  /// The server supports checksums in a trailer.
  package var trailsChecksums = false

  /// The server deletes uploads on request; nil: its extensions were not queried. tus 1.0 §Termination.
  package var terminates: Bool?

  /// The server publishes the members of a group together.
  var publishesGroups = false

  /// Uploads are created as parts of another upload.
  var isPart = false

  private let uploads = OpenUploads()

  /// Creates the protocol. Files up to `wholeUpTo` bytes are sent with the request that creates the upload.
  public init(wholeUpTo: Int64 = 4 << 20, checksum: Digest.Algorithm? = nil) {
    self.wholeUpTo = wholeUpTo
    self.checksum = checksum
  }

  public var traits: UploadTraits {
    var traits = UploadTraits(
      resumesCreations: true, carriesMetadata: true, postsToEndpoint: true,
      digests: checksum == nil ? .none : trailsChecksums ? .trailing : .ahead,
      checksums: Digest.Algorithm.all, namesInFields: true, concatenation: isPart ? nil : TusConcatenation(tus: self))
    traits.publishesGroups = publishesGroups
    return traits
  }

  /// OPTIONS, without `Tus-Resumable`. tus 1.0 §Core Protocol, OPTIONS.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    let response = try await with.send(request)
    guard response.isSuccess else {
      throw UploadError(request, response).namingWebDAV(response, insteadOf: name)
    }
    guard let limits = limits(from: response.headers) else {
      let error = UploadError(
        .giveUp, .destination, "\(target.endpoint): does not speak tus \(Self.version) (no Tus-Version in its answer)",
        status: response.status)
      throw error.namingWebDAV(response, insteadOf: name)
    }
    try checkOffer(response.headers, at: target.endpoint, with)
    return UploadOffer(offered(response.headers), limits)
  }

  /// The limits from a response to OPTIONS; nil if it does not offer tus 1.0.0.
  func limits(from headers: HTTPHeaders) -> PartLimits? {
    guard headers.list("Tus-Version").contains(Self.version) || headers["Tus-Resumable"] == Self.version else {
      return nil
    }
    let extensions = Set(headers.list("Tus-Extension"))
    return PartLimits(
      usual: checksum == nil ? nil : Self.usualChecked, isParallel: extensions.contains("concatenation"),
      needsLength: !extensions.contains("creation-defer-length"),
      firstPart: extensions.contains("creation-with-upload") ? wholeUpTo : 0,
      total: headers.bytes("Tus-Max-Size"))
  }

  /// POST, with the first part if there is one. tus 1.0 §Creation, §Creation With Upload.
  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    var request = creation(of: target, hasBody: first != nil)
    let response = try await send(following: &request, checked: first?.body, with)
    if response.isSuccess, response.status != 201 {
      throw UploadError(
        .giveUp, .destination, "POST \(request.url): answered \(response.status) instead of 201, as tus has it",
        status: response.status)
    }
    guard response.status == 201 else {
      let error = UploadError(creating: request, response)
      // Without a body, 413 concerns the length of the file.
      throw first == nil ? error : error.cuttable()
    }
    // The whole file is stored, so no other field matters. `Location` may be missing, or was removed because of a
    // secret in it.
    if let length = target.length, first?.part.isLast == true, response.headers.bytes("Upload-Offset") == length {
      let location = response.headers["Location"] == nil ? nil : try request.uploadURL(response.head).text
      // The next run asks the upload that waits for the other members of its group.
      if target.group != nil, response.saysWaiting { with.opened(try session(for: target, request, response)) }
      return .finished(UploadResult(location: location, length: length).told(by: response, of: target.group))
    }
    let session = try session(for: target, request, response)
    // A response without an offset does not tell how much of the body is stored.
    guard let offset = response.headers.bytes("Upload-Offset") ?? (first == nil ? 0 : nil) else {
      with.opened(session)
      return try await held(by: session, with)
    }
    let held = try held(offset, session, request, response)
    if case .upTo = held { with.opened(session) }
    return held
  }

  private func creation(of target: UploadTarget, hasBody: Bool) -> HTTPRequest {
    var request = HTTPRequest("POST", target.endpoint, ["Tus-Resumable": Self.version])
    if let length = target.length {
      request.headers.add("Upload-Length", String(length))
    } else {
      request.headers.add("Upload-Defer-Length", "1")
    }
    if isPart {
      request.headers.add("Upload-Concat", "partial")
    } else {
      request.headers.add("Upload-Metadata", TusMetadata.value(of: target))
    }
    if hasBody { request.headers.add("Content-Type", Self.bodyType) }
    return request
  }

  private func session(
    for target: UploadTarget, _ request: HTTPRequest, _ response: HTTPResponse
  ) throws(UploadError) -> UploadSession {
    let url = try request.uploadURL(response.head)
    var session = UploadSession(
      state: ["url": url.text], expires: response.headers["Upload-Expires"].flatMap { HTTPDate.seconds($0) })
    session.length = target.length
    if !isPart { (session.names, session.group) = (TusMetadata.names(of: target), target.group) }
    return session
  }

  /// HEAD. A 404, 410 or 403 means that the session no longer exists. tus 1.0 §Core Protocol, HEAD.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    if session.sizeOfParts != nil { return .parts(try await heldParts(of: session, with), session) }
    let request = HTTPRequest("HEAD", try session.uploadURL(), ["Tus-Resumable": Self.version])
    let response = try await with.send(request)
    guard response.isSuccess else {
      uploads.end(session)
      throw UploadError(session: request, response)
    }
    guard let offset = response.headers.bytes("Upload-Offset") else {
      throw UploadError(
        .giveUp, .destination, "HEAD \(request.url): answered without a valid Upload-Offset", status: response.status)
    }
    if let names = session.names, TusMetadata.namesAnother(response.headers["Upload-Metadata"], than: names) {
      throw UploadError(
        .restart, .destination, "HEAD \(request.url): the server has the upload of another file there")
    }
    var session = renewed(session, response)
    if let theirs = response.headers.bytes("Upload-Length") {
      // A deferred length is sent with the last part, whose response may have been lost.
      guard let ours = session.length ?? session.sourceEnd else {
        throw UploadError(
          .restart, .destination, "HEAD \(request.url): the server expects \(theirs) bytes, and was told no length")
      }
      if theirs != ours {
        throw UploadError(
          .restart, .destination, "HEAD \(request.url): the server expects \(theirs) bytes, the source has \(ours)")
      }
      session.length = ours
    }
    return try held(offset, session, request, response)
  }

  /// PATCH. tus 1.0 §Core Protocol, PATCH; a deferred length is sent with the last part.
  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent
  {
    var request = HTTPRequest(
      "PATCH", try session.uploadURL(),
      ["Tus-Resumable": Self.version, "Upload-Offset": String(part.start), "Content-Type": Self.bodyType])
    try uploads.note(session)
    var session = session
    if session.length == nil, part.isLast, let length = part.length {
      request.headers.add("Upload-Length", String(part.start + length))
      session.length = part.start + length
    }
    request.headers[UploadGroup.field] = session.group?.text
    request = request.through(with.methods)
    let response = try await send(following: &request, checked: body, with)
    let hasLength = body.length != nil && request.headers["Trailer"] == nil
    let holding = await holding(of: session, from: part.start, after: response, with)
    // A part has no file name, so the server has no reason to refuse it once it has the whole part.
    if isPart, case .whole(let result) = holding { return .finished(result) }
    if isRefused(request, hasLength: hasLength, holding, response, with) || isMisunderstood(request, response, with) {
      throw UploadError(
        .adapt, .destination, "\(request.method) \(request.url): \(response.summary)", status: response.status)
    }
    try checkOverride(request, response, with)
    if response.status == 409 { throw await conflict(request, part, response, session, with) }
    guard response.saysStored else {
      if response.isInterruption {
        throw UploadError(.resync, .file, "\(request.method) \(request.url): \(response.summary)", status: 400)
      }
      throw UploadError(sending: request, response, holding).cuttable()
    }
    guard let offset = response.headers.bytes("Upload-Offset"), offset >= part.start else {
      let what =
        response.headers.bytes("Upload-Offset").map { "says that it holds \($0) bytes, and held \(part.start) before" }
        ?? "does not say how many bytes it holds (no valid Upload-Offset)"
      throw UploadError(.resync, .file, "PATCH \(request.url): answered \(response.status), and the server \(what)")
    }
    if let length = part.length, offset > part.start + length {
      throw UploadError(
        .giveUp, .destination,
        "PATCH \(request.url): the server says it holds \(offset) bytes, and was sent \(part.start + length)")
    }
    switch try held(offset, renewed(session, response), request, response) {
    case .finished(let result): return .finished(result)
    case .upTo(_, let session), .parts(_, let session):
      return .receipt(PartReceipt(number: part.number, start: part.start, held: offset - part.start), session)
    }
  }

  /// The error for 409 to a PATCH: the offsets differ, or the name is taken. In the second case the server has dropped
  /// the upload, or has all bytes and refuses the final request; a retry would be refused too.
  private func conflict(
    _ request: HTTPRequest, _ part: Part, _ response: HTTPResponse, _ session: UploadSession,
    _ with: UploadContext
  ) async -> UploadError {
    var held: Int64?
    do {
      switch try await self.held(by: session, with) {
      case .upTo(let offset, _): held = offset
      // All bytes were there before, and this request only gave the length.
      case .finished(let result): held = result.length
      case .parts: break
      }
    } catch {
      if error.recovery == .restart, error.status != nil { return UploadError(request, response) }
    }
    if part.isLast, part.length == 0, held == part.start { return UploadError(request, response) }
    return UploadError(offsetOf: request, from: part.start, held: held, response)
  }

  /// The server has the whole file once its offset is the length, so no request is needed. An upload that waits for the
  /// other members of its group is told which these are now: another run may have sent other ones.
  public func complete(
    _ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    guard session.group != nil, let length = session.length else {
      return UploadResult(location: session.state["url"], length: session.length)
    }
    let end = Part(number: 1, start: length, length: 0, isLast: true)
    let none = BlobSlice(DataSource([]), length: 0)
    guard case .finished(let result) = try await send(end, none, to: session, with) else {
      throw UploadError(.resync, .file, "PATCH \(try session.uploadURL()): the server has lost the end of the file")
    }
    return result
  }

  /// DELETE. A server without this extension keeps the upload until it expires: throws with `KeepsUploads` as the
  /// cause. tus 1.0 §Termination.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    uploads.end(session)
    if session.sizeOfParts != nil {
      try await abortParts(of: session, with)
    } else {
      try await abort(try session.uploadURL(), with)
    }
  }

  private func held(
    _ offset: Int64, _ session: UploadSession, _ request: HTTPRequest, _ response: HTTPResponse
  ) throws(UploadError) -> Held {
    try uploads.note(session)
    guard let length = session.length else { return .upTo(offset, session) }
    if offset > length {
      throw UploadError(
        .giveUp, .destination,
        "\(request.method) \(request.url): the server says that it holds \(offset) bytes of \(length): it cannot be trusted"
      )
    }
    // The upload is complete, and no request has named its group yet.
    let asksGroup = request.method == "HEAD" && session.group != nil && response.saysWaiting
    if offset < length || asksGroup { return .upTo(offset, session) }
    uploads.end(session)
    return .finished(UploadResult(location: session.state["url"], length: offset).told(by: response, of: session.group))
  }

  private func renewed(_ session: UploadSession, _ response: HTTPResponse) -> UploadSession {
    var session = session
    if let expires = response.headers["Upload-Expires"] { session.expires = HTTPDate.seconds(expires) }
    return session
  }
}
