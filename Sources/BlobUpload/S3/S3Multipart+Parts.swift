import BlobCrypto
import BlobHTTP
import Blobs

/// Large objects: multipart uploads.
extension S3Multipart {
  func begin(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> Held {
    var request = HTTPRequest("POST", target.url.withQuery("uploads="), objectFields(target))
    request.headers["x-amz-checksum-algorithm"] = options.checksum.s3Name
    if options.checksum.isJoinable { request.headers["x-amz-checksum-type"] = "FULL_OBJECT" }
    let response = try await send(request, nil, with)
    guard response.isSuccess else {
      throw UploadError(request, response, s3: S3ErrorResponse(response), signer)
    }
    guard let answer = XMLTree(response.body), let id = answer.text("UploadId") else {
      throw UploadError(
        .giveUp, .destination, "POST \(request.url): answered \(response.status) without an UploadId: is this S3?",
        status: response.status)
    }
    var state = ["url": target.url.text, "id": id, "checksum": options.checksum.name]
    if target.overwrite { state["overwrite"] = "true" }
    if response.headers["x-amz-checksum-type"] == "FULL_OBJECT" { state["whole"] = "true" }
    var session = UploadSession(state: state, limits: limits)
    session.length = target.length
    with.opened(session)
    return .parts([], session)
  }

  /// Sends one numbered part by PUT. Its receipt contains the part's ETag.
  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent
  {
    guard let length = part.length else { preconditionFailure("a numbered part has a length") }
    let upload = try S3Upload(session)
    let request = HTTPRequest("PUT", upload.url(["partNumber": String(part.number)]))
    let (response, body) = try await send(request, vouchedBy: body, with)
    guard response.isSuccess else {
      throw UploadError(request, response, s3: S3ErrorResponse(response), signer)
    }
    try checkStored(request, response)
    if let tag = response.headers["ETag"], tag.utf8.count > Self.longestTag {
      throw UploadError(
        .giveUp, .destination, "PUT \(request.url): answered with an ETag of \(tag.utf8.count) bytes: is this S3?",
        status: response.status)
    }
    var receipt = PartReceipt(
      number: part.number, start: part.start, held: length, state: Self.state(response.headers["ETag"]))
    if let checksum = body.checksum {
      receipt.state[PartReceipt.digestKey] = "\(options.checksum) \(base64(checksum))"
      if response.headers[options.checksum.s3Field] != nil { receipt.state["echoed"] = "true" }
    }
    return .receipt(receipt, session)
  }

  /// Lists the parts with ListParts. If the upload is gone, the object may exist, because the response to its
  /// completion was lost.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    let upload = try S3Upload(session)
    do throws(UploadError) {
      return .parts(try await parts(of: upload, with), session)
    } catch {
      guard error.cause is S3UploadIsGone else { throw error }
      return .finished(try await published(session, upload, with))
    }
  }

  /// Maximum length of a part's ETag or checksum, in bytes. ETags of S3 have 34 bytes; those of all 10,000 parts are
  /// held in memory.
  private static let longestTag = 1024
  /// Maximum number of pages in a list of parts. 10,000 parts have 10 pages if the server returns as many parts per
  /// page as requested.
  private static let mostPages = 1000

  /// Lists the parts with ListParts, page by page. Throws with `S3UploadIsGone` as the cause if the server does not
  /// know the upload. Each part number counts once, on the page where it belongs, so the result has at most 10,000
  /// parts.
  func parts(of upload: S3Upload, _ with: UploadContext) async throws(UploadError) -> [PartReceipt] {
    var parts: [PartReceipt] = []
    var taken: Set<Int> = []
    var marker: String?
    var pages = 0
    repeat {
      let request = HTTPRequest("GET", upload.url(["max-parts": "1000", "part-number-marker": marker]))
      let response = try await send(request, nil, with)
      guard response.isSuccess else {
        let refusal = S3ErrorResponse(response)
        var error = UploadError(request, response, s3: refusal, signer)
        if refusal?.isOfGoneUpload == true || refusal?.name == nil && [404, 410].contains(response.status) {
          error.cause = S3UploadIsGone()
        }
        throw error
      }
      // Some servers name the element `ListPartsResponse`.
      guard let list = XMLTree(response.body), list.name.hasPrefix("ListParts") else {
        throw UploadError(
          .giveUp, .destination, "GET \(request.url): answered without a list of parts: is this S3?",
          status: response.status)
      }
      let before = Int64(digits: marker ?? "0") ?? 0
      for part in list.all("Part").lazy.compactMap({ receipt($0, upload) })
      where part.number > before && taken.insert(part.number).inserted {
        parts.append(part)
      }
      // If a truncated list has no marker, the next page begins after its last part.
      let last = list.text("NextPartNumberMarker") ?? list.all("Part").last?.text("PartNumber") ?? ""
      let next = list.text("IsTruncated") == "true" ? last : nil
      // If markers do not grow, or exceed the highest part number, the list would never end.
      let after = Int64(digits: next ?? "0") ?? 0
      pages += 1
      if let next, after <= before || after > Self.mostParts || pages == Self.mostPages {
        throw UploadError(
          .giveUp, .destination, "GET \(request.url): the list of parts does not go on after \(next.shownLine(20))")
      }
      marker = next
    } while marker != nil
    return parts
  }

  private func receipt(_ part: XMLTree, _ upload: S3Upload) -> PartReceipt? {
    guard let number = part.text("PartNumber").flatMap({ Int64(digits: $0) }), 1...Self.mostParts ~= number,
      let size = part.text("Size").flatMap({ Int64(digits: $0) }), let tag = part.text("ETag"),
      tag.utf8.count <= Self.longestTag
    else { return nil }
    var state = ["etag": tag]
    if let checksum = upload.checksum, let value = part.text("Checksum\(checksum.s3Name)"),
      value.utf8.count <= Self.longestTag
    {
      state[PartReceipt.digestKey] = "\(checksum) \(value)"
      state["echoed"] = "true"
    }
    let start = (number - 1).multipliedClamped(by: upload.partSize ?? 0)
    return PartReceipt(number: Int(number), start: start, held: size, state: state)
  }

  /// Parts may arrive while the upload is deleted, so this repeats until nothing is left.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    try await abort(try S3Upload(session), with)
  }

  func abort(_ upload: S3Upload, _ with: UploadContext) async throws(UploadError) {
    for _ in 0..<5 {
      let request = HTTPRequest("DELETE", upload.url())
      let response = try await send(request, nil, with)
      let refusal = S3ErrorResponse(response)
      guard response.saysDeleted || refusal?.code == "NoSuchUpload" else {
        if response.isSuccess { throw UploadError(deleting: request, response) }
        throw UploadError(request, response, s3: refusal, signer)
      }
      if !response.isSuccess { return }
      let list = try await send(HTTPRequest("GET", upload.url(["max-parts": "1"])), nil, with)
      if !list.isSuccess { return }
    }
    throw UploadError(.retry(after: nil), .file, "DELETE \(upload.object): parts of it still arrive")
  }
}

/// The server does not know the upload: it was completed or deleted, or never existed.
struct S3UploadIsGone: Error {}

/// A multipart upload, decoded from its session.
struct S3Upload: Sendable {
  var object: HTTPURL
  var id: String
  var length: Int64?
  var partSize: Int64?
  var overwrites = false
  /// The object that the completion replaces, with `overwrites`; nil: the session does not name it.
  var replaced: ReplacedFile?
  /// The server supports checksums of the whole object.
  var knowsWhole = false
  var checksum: Digest.Algorithm?
  /// The expected ETag and checksum of the completed object; nil: no completion was tried.
  var tag: String?
  var whole: String?

  init(object: HTTPURL, id: String) {
    self.object = object
    self.id = id
  }

  init(_ session: UploadSession) throws(UploadError) {
    object = try session.uploadURL()
    guard let id = session.state["id"] else {
      throw UploadError(.restart, .journal, "the upload's id is missing from the journal")
    }
    self.id = id
    length = session.length
    partSize = session.partSize
    overwrites = session.state["overwrite"] != nil
    replaced = session.state["replaced"].map { .version($0) }
    knowsWhole = session.state["whole"] != nil
    checksum = session.state["checksum"].flatMap { Digest.Algorithm($0) }
    tag = session.state["etag"]
    whole = session.state["value"]
  }

  /// Whether `object` is the result of this upload's completion: compared by the checksum of the whole, or by the ETag,
  /// because some servers report the checksum of something else for a multipart object.
  func made(_ object: S3Object) -> Bool {
    guard object.length == length else { return false }
    if let whole, let theirs = checksum.flatMap({ object.checksums[$0] }), whole == theirs { return true }
    return tag != nil && tag == object.tag?.unquoted
  }

  /// The upload's URL with additional query parameters; nil values are left out.
  func url(_ fields: [String: String?] = [:]) -> HTTPURL {
    var items = fields.compactMap { name, value in value.map { "\(name)=\($0.asQueryValue)" } }.sorted()
    items.append("uploadId=\(id.asQueryValue)")
    return object.withQuery(items.joined(separator: "&"))
  }
}

extension PartReceipt {
  /// Key of the name and the base64 digest of the part's bytes.
  static let digestKey = "digest"
}

extension String {
  /// Percent-encoded, including slashes.
  var asQueryValue: String {
    HTTPURL.encode(utf8).split(separator: "/", omittingEmptySubsequences: false).joined(separator: "%2F")
  }
}
