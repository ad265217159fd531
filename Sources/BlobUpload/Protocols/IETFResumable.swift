import BlobCrypto
import BlobHTTP
import Blobs

/// Resumable uploads for HTTP, draft-ietf-httpbis-resumable-upload, interop version 8.
///
/// A small file is sent with the request that creates the upload. A large file gets an empty upload first, so that its
/// URL is known before its first byte. A server that reports no limits gets the whole file at once.
public struct IETFResumable: ReplacingProtocol {
  public let name = "resumable"
  static let version = "8"
  package static let bodyType = "application/partial-upload"

  /// A file up to this many bytes is sent with the request that creates the upload.
  public var wholeUpTo: Int64
  /// Each body has a digest (SHA-256 or SHA-512) that the server verifies; nil: bodies have none. RFC 9530.
  public var checksum: Digest.Algorithm?
  /// The server has reported its limits, as the protocol requires, so its responses must follow the protocol too.
  var isOffered = false
  /// The server publishes the members of a group together.
  var publishesGroups = false
  private let uploads = OpenUploads()

  /// Creates the protocol. Files up to `wholeUpTo` bytes are sent with the request that creates the upload.
  public init(wholeUpTo: Int64 = 4 << 20, checksum: Digest.Algorithm? = nil) {
    self.wholeUpTo = wholeUpTo
    self.checksum = checksum
  }

  public var traits: UploadTraits {
    var traits = UploadTraits(
      resumesCreations: true, acknowledgesOnTheWay: true, postsToEndpoint: true,
      digests: checksum == nil ? .none : .ahead, queries: .ofOneFile, checksums: DigestField.algorithms.map(\.algorithm)
    )
    traits.publishesGroups = publishesGroups
    return traits
  }

  /// OPTIONS. Servers that implement the draft must respond with their limits; older ones do not.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    let response = try await with.send(request)
    if let refusal = UploadError(asking: request, response) { throw refusal }
    if let checksum { try ContentDigest.checkOffer(request, response, checksum, at: target.endpoint) }
    if let limits = limits(from: response.headers) { return UploadOffer(offered(response.headers), bounded(limits)) }
    return UploadOffer(self, bounded(PartLimits(firstPart: .max)))
  }

  // MARK: Creation

  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    var request = request("POST", target.url)
    request.headers["Content-Digest"] = try await ContentDigest.field(of: first?.body, checksum)
    request.headers.add("Upload-Complete", first?.part.isLast == true ? "?1" : "?0")
    if let length = target.length { request.headers.add("Upload-Length", String(length)) }
    request.headers.add("Content-Type", target.contentType)
    request.headers.add("Content-Disposition", ContentDisposition.inline(target.path.name.bytes))
    request.headers.add(modificationTimeOf: target)
    request.replaceFile(of: target)
    request.headers[UploadGroup.field] = target.group?.text
    let announced = AnnouncedSession()
    let response = try await send(&request, first?.body, with) { url, fields in
      let session = Self.session(url, target, fields)
      announced.session.withLock { $0 = session }
      with.opened(session)
    }
    let isWhole = StructuredField.boolean(response.headers["Upload-Complete"])
    guard response.isSuccess else {
      let error = UploadError(creating: request, response)
      if isWhole == true { throw error.final }
      if let other = await otherVersion(request, response, target, with) { throw other }
      // Without a body it is the file that is too large.
      let refusal = first == nil ? error : error.cuttable(response.headers.uploadLimits?.largest)
      throw isOffered ? refusal : await with.hinted(refusal, of: request, by: name)
    }
    if let first, first.part.isLast, isWhole != false {
      // A server that does not support this protocol has processed an ordinary POST.
      if isWhole == nil {
        guard response.saysStored else { throw UploadError(creating: request, response) }
        if let session = announced.session.withLock({ $0 }) {
          do throws(UploadError) { return try await held(by: session, with) } catch {
            // A server may forget an upload that is complete.
            if error.recovery != .restart { throw error }
          }
        }
        if isOffered { try await checkStored(target, first.body, request, response, with) }
        try await with.confirm(response, to: request, first.body, target)
      }
      // The next run asks the upload that waits for the other members of its group.
      if target.group != nil, response.saysWaiting, let url = try? request.uploadURL(response.head) {
        with.opened(Self.session(url, target, response.headers))
      }
      return .finished(result(of: response, target.group))
    }
    if isWhole == true { throw tooSoon(request, response) }
    guard isWhole == false else {
      throw UploadError(
        .giveUp, .destination,
        "POST \(request.url): answered \(response.status) without Upload-Complete, as a server does that does not speak "
          + "resumable uploads; look whether it has made an empty file, and name another protocol (put+)",
        status: response.status)
    }
    let session = Self.session(try request.uploadURL(response.head), target, response.headers)
    try await check(session, with)
    try uploads.note(session)
    with.opened(session)
    if first == nil { return .upTo(0, session) }
    return try await held(by: session, with)
  }

  /// Throws unless the file is stored. A server that supports the protocol must say whether an upload is complete. This
  /// response does not, so it may come from an intermediary, such as a login page.
  private func checkStored(
    _ target: UploadTarget, _ body: BlobSlice, _ request: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext
  ) async throws(UploadError) {
    let wanted = target.length ?? body.source.lengthRead(from: body.start)
    let place = with.place(madeBy: response, to: request)
    if let wanted, try await with.remoteLength(of: place, expecting: wanted) == .found(wanted) { return }
    throw UploadError(
      .giveUp, .destination,
      "\(request.method) \(request.url): answered \(response.status) without Upload-Complete, though the server offers resumable "
        + "uploads, and the file is not seen there: something before the server may have answered in its place",
      status: response.status)
  }

  private func result(of response: HTTPResponse, _ group: UploadGroup?) -> UploadResult {
    UploadResult(
      location: response.headers["Location"], reply: response.body,
      length: StructuredField.integer(response.headers["Upload-Offset"])
    ).told(by: response, of: group)
  }

  private static func session(_ url: HTTPURL, _ target: UploadTarget, _ fields: HTTPHeaders) -> UploadSession {
    let limit = fields.uploadLimit
    var session = UploadSession(
      state: ["url": url.text], limits: limit?.parts ?? PartLimits(), expires: limit?.expires)
    session.length = target.length
    session.names = base64(target.path.bytes)
    session.group = target.group
    return session
  }

  /// Deletes an upload that can never be completed, as the draft requires.
  private func check(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    guard let length = session.length, let most = session.limits.total, length > most else { return }
    // If the deletion fails, the upload expires on the server.
    try? await abort(session, with)
    throw UploadError(
      .giveUp, .file, "\(try session.uploadURL()): \(length) bytes, and the server takes \(most) at most")
  }

  // MARK: The upload's own URL

  /// HEAD. A 404, 410 or 403 means that the session no longer exists.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    let request = request("HEAD", try session.uploadURL())
    let response = try await with.send(request)
    if !response.isSuccess { uploads.end(session) }
    guard response.isSuccess else { throw UploadError(session: request, response) }
    if let theirs = StructuredField.integer(response.headers["Upload-Length"]),
      let ours = session.length ?? session.sourceEnd, theirs != ours
    {
      throw UploadError(
        .restart, .destination, "HEAD \(request.url): the server expects \(theirs) bytes, the source has \(ours)")
    }
    try uploads.note(session)
    // An upload that waits for the other members of its group is told which these are now.
    let isWaiting = session.group != nil && response.saysWaiting
    if !isWaiting, StructuredField.boolean(response.headers["Upload-Complete"]) == true {
      uploads.end(session)
      return .finished(result(of: response, session.group))
    }
    guard let offset = StructuredField.integer(response.headers["Upload-Offset"]), offset >= 0 else {
      throw UploadError(
        .giveUp, .destination, "HEAD \(request.url): answered without a valid Upload-Offset", status: response.status)
    }
    var session = session
    if let limit = response.headers.uploadLimit {
      session.expires = limit.expires ?? session.expires
      session.limits = limit.parts
    }
    if let length = session.length, offset > length {
      throw UploadError(
        .giveUp, .destination,
        "HEAD \(request.url): the server says that it holds \(offset) bytes of \(length): it cannot be trusted")
    }
    return .upTo(offset, session)
  }

  /// Appends bytes at the part's offset, by PATCH.
  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent
  {
    try uploads.note(session)
    var request = append(at: part.start, isLast: part.isLast, session, try session.uploadURL())
    request.headers["Content-Digest"] = try await ContentDigest.field(of: body, checksum)
    let response = try await send(&request, body, with)
    let isWhole = StructuredField.boolean(response.headers["Upload-Complete"])
    guard response.isSuccess else {
      // A server that has all bytes, and only learns that they are all, refuses the name.
      let isOfName =
        part.isLast && part.length == 0 && StructuredField.integer(response.headers["Upload-Offset"]) == part.start
      if response.status == 409, isWhole != true {
        if isOfName { throw UploadError(request, response) }
        throw UploadError(offsetOf: request, from: part.start, response)
      }
      // With `?1` the upload is complete, and this is the response of its target.
      if isWhole == true { throw UploadError(session: request, response).final }
      let holding = await holding(of: session, from: part.start, after: response, with)
      throw UploadError(sending: request, response, holding).cuttable(response.headers.uploadLimits?.largest)
    }
    if isWhole == true {
      if !part.isLast { throw tooSoon(request, response) }
      uploads.end(session)
      return .finished(result(of: response, session.group))
    }
    if part.isLast {
      throw UploadError(.resync, .destination, "PATCH \(request.url): answered as if there were more to come")
    }
    guard let offset = StructuredField.integer(response.headers["Upload-Offset"]) else {
      return .receipt(PartReceipt(number: part.number, start: part.start, held: PartReceipt.all), session)
    }
    // For a part of unknown length, the uploader knows how much was sent.
    let end = part.length.map { part.start + $0 } ?? .max
    if offset < part.start || offset > end {
      throw UploadError(
        .resync, .destination,
        "PATCH \(request.url): the server says it holds \(offset) bytes, and was sent \(end)")
    }
    return .receipt(PartReceipt(number: part.number, start: part.start, held: offset - part.start), session)
  }

  /// Appends no bytes, to tell the server that it has all of them.
  public func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext)
    async throws(UploadError) -> UploadResult
  {
    switch try await held(by: session, with) {
    case .finished(let result): return result
    case .upTo(let offset, let session):
      let request = append(at: offset, isLast: true, session, try session.uploadURL())
      if let length = session.length, offset != length {
        throw UploadError(.resync, .file, "HEAD \(request.url): the server holds \(offset) bytes of \(length)")
      }
      let response = try await with.send(request)
      guard response.isSuccess else { throw UploadError(session: request, response) }
      if StructuredField.boolean(response.headers["Upload-Complete"]) == false {
        throw UploadError(.resync, .destination, "PATCH \(request.url): answered as if there were more to come")
      }
      return result(of: response, session.group)
    case .parts: throw UploadError(.giveUp, .destination, "resumable uploads have no numbered parts")
    }
  }

  public func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError)
    -> Bool
  {
    try await with.isThere(target)
  }

  /// DELETE; any response that says that the upload no longer exists is a success.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    uploads.end(session)
    let request = request("DELETE", try session.uploadURL())
    let response = try await with.send(request)
    if response.saysDeleted { return }
    if response.status == 403, await isGone(session, with) { return }
    throw UploadError(deleting: request, response)
  }

  private func append(at offset: Int64, isLast: Bool, _ session: UploadSession, _ url: HTTPURL) -> HTTPRequest {
    var request = request("PATCH", url)
    request.headers[UploadGroup.field] = session.group?.text
    request.headers.add("Upload-Offset", String(offset))
    request.headers.add("Upload-Complete", isLast ? "?1" : "?0")
    request.headers.add("Content-Type", Self.bodyType)
    return request
  }

  /// Sends a request and handles 104 responses: `located` gets the upload's URL, `acknowledged` the server's offset.
  private func send(
    _ request: inout HTTPRequest, _ body: BlobSlice?, _ with: UploadContext,
    located: @escaping @Sendable (HTTPURL, HTTPHeaders) -> Void = { _, _ in }
  ) async throws(UploadError) -> HTTPResponse {
    let heed: @Sendable (HTTPHead) -> Void = { [request] head in
      // A 104 without our version belongs to another protocol.
      guard head.status == 104, head.headers["Upload-Draft-Interop-Version"] == Self.version else { return }
      // A foreign Location is ignored here; in the final response it is an error.
      if head.headers["Location"] != nil, let url = try? request.uploadURL(head) { located(url, head.headers) }
      if let offset = StructuredField.integer(head.headers["Upload-Offset"]) { with.events.acknowledged(offset) }
    }
    var on = with.reporting
    on.interim = heed
    return try await with.send(following: &request, body: body, on)
  }
}
