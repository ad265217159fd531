import BlobHTTP
import Blobs

/// Google Cloud Storage's JSON API: a small file is sent in one request, a large one in a resumable upload.
///
/// The endpoint is the URL of a bucket, or of a folder in it: `https://storage.googleapis.com/bucket/folder/`.
/// https://cloud.google.com/storage/docs/performing-resumable-uploads
public struct CloudStorage: UploadProtocol {
  public let name = "gcs"
  /// The scheme that stands for Google's own server.
  static let (scheme, server) = ("gs", "https://storage.googleapis.com/")

  /// A file up to this many bytes is sent in one request.
  public var wholeUpTo: Int64

  /// All parts except the last one are multiples of this size, and so are the bytes that the server keeps of an
  /// interrupted request.
  static let unit: Int64 = 256 << 10

  /// Creates the protocol. Files up to `wholeUpTo` bytes are sent in one request, without a session.
  public init(wholeUpTo: Int64 = 4 << 20) { self.wholeUpTo = wholeUpTo }

  public var traits: UploadTraits {
    UploadTraits(
      resumesCreations: true, carriesMetadata: true, needsBodyLengths: true, namesBuckets: true, provesVersions: true)
  }

  var limits: PartLimits { PartLimits(smallest: Self.unit, firstPart: wholeUpTo, total: 5 << 40) }

  /// Lists one object of the bucket, so that a wrong token or bucket is detected before the first byte. An account with
  /// write permission only may not list, but can upload.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    let place = try CloudObject(target.endpoint)
    let request = HTTPRequest("GET", place.bucketURL.withQuery("maxResults=1"))
    let response = try await with.send(request)
    if response.isSuccess || response.status == 403 { return UploadOffer(self, limits) }
    var error = place.refusal(request, response)
    error.side = .destination
    throw error
  }

  public func create(
    _ target: UploadTarget, first: FirstPart?, _ with: UploadContext
  ) async throws(UploadError) -> Held {
    let object = try CloudObject(target)
    let resource = CloudResource(object, target)
    let condition = target.overwrite ? "" : "&ifGenerationMatch=0"
    if let first { return .finished(try await put(first, resource, condition, object, target, with)) }
    var request = HTTPRequest(
      "POST", object.uploadURL.withQuery("uploadType=resumable&name=\(object.encodedName)\(condition)"),
      ["Content-Type": CloudResource.contentType, "X-Upload-Content-Type": target.contentType])
    if let length = target.length { request.headers["X-Upload-Content-Length"] = String(length) }
    // The resource is not part of the file, so its bytes are not counted.
    var uncounted = with
    uncounted.events = NoUploadEvents()
    let response = try await uncounted.send(request, body: BlobSlice(DataSource(resource.json)))
    if response.status == 412 { return .finished(try await claim(object, with)) }
    guard response.status == 200 || response.status == 201 else { throw object.refusal(request, response) }
    let url = try request.uploadURL(response.head)
    var state = ["url": url.text, "object": target.url.text]
    if target.overwrite { state["overwrites"] = "1" }
    var session = UploadSession(state: state)
    session.length = target.length
    with.opened(session)
    return .upTo(0, session)
  }

  /// Sends the whole file in one request.
  private func put(
    _ first: FirstPart, _ resource: CloudResource, _ condition: String, _ object: CloudObject, _ target: UploadTarget,
    _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let whole = CloudWhole(resource, target, first.body)
    let query = "uploadType=multipart&name=\(object.encodedName)\(condition)"
    var request = HTTPRequest("POST", object.uploadURL.withQuery(query), ["Content-Type": whole.contentType])
    let response = try await with.send(
      following: &request, body: whole.body, with.reporting(fileBehind: whole.head, length: first.part.length))
    if response.status == 412 { return try await claim(object, with) }
    guard response.status == 200 else { throw object.refusal(request, response) }
    return try await finished(response, to: request, object, isNew: true, overwrites: target.overwrite, with)
  }

  /// PUT with `Content-Range`. A part before the end of the file is shortened to a multiple of 256 KiB.
  public func send(
    _ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext
  ) async throws(UploadError) -> Sent {
    guard var length = part.length else { preconditionFailure("the length of each body is known") }
    if !part.isLast { length -= length % Self.unit }
    guard length > 0 || part.isLast else {
      throw UploadError(
        .giveUp, .destination,
        "\(try session.uploadURL()): a part of \(part.length ?? 0) bytes is too small: Google Cloud "
          + "Storage takes multiples of \(Self.unit)")
    }
    let total = part.isLast ? part.start + length : session.length
    let range = length > 0 ? "\(part.start)-\(part.start + length - 1)" : "*"
    var body = body
    body.length = length
    switch try await put(range, total, body, to: session, isNew: true, with) {
    case .finished(let result): return .finished(result)
    case .upTo(let held, let session):
      guard held >= part.start else {
        throw UploadError(
          .resync, .file,
          "PUT \(try session.uploadURL()): the server holds \(held) bytes, and held \(part.start) before")
      }
      return .receipt(PartReceipt(number: part.number, start: part.start, held: held - part.start), session)
    case .parts: preconditionFailure("parts have no numbers here")
    }
  }

  /// An empty PUT with `Content-Range: bytes */N`, which also completes an upload that has all its bytes.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    try await put(
      "*", session.length ?? session.sourceEnd, BlobSlice(DataSource([])), to: session, isNew: false, with)
  }

  public func complete(
    _ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    if case .finished(let result) = try await held(by: session, with) { return result }
    throw UploadError(.resync, .file, "PUT \(try session.uploadURL()): the server has all bytes, and waits for more")
  }

  private func put(
    _ range: String, _ total: Int64?, _ body: BlobSlice, to session: UploadSession, isNew: Bool, _ with: UploadContext
  ) async throws(UploadError) -> Held {
    var request = HTTPRequest(
      "PUT", try session.uploadURL(), ["Content-Range": "bytes \(range)/\(total.map { String($0) } ?? "*")"])
    let response = try await with.sendOnce(&request, body, accepting: 308)
    switch response.status {
    case 308: return .upTo(try offset(response, to: request), session)
    case 200, 201:
      return .finished(
        try await finished(
          response, to: request, try CloudObject(session), isNew: isNew, overwrites: session.state["overwrites"] != nil,
          with))
    case 412: return .finished(try await claim(try CloudObject(session), with))
    default: break
    }
    var error = UploadError(request, response, conflict: .resync)
    if [404, 410, 499].contains(response.status) { error.recovery = .restart }
    if response.status == 416 { error.recovery = .resync }
    throw error
  }

  /// The server's offset, from `Range: bytes=0-N` of a 308 response; without that field it has no bytes.
  private func offset(_ response: HTTPResponse, to request: HTTPRequest) throws(UploadError) -> Int64 {
    guard let range = response.headers["Range"] else { return 0 }
    if range.hasPrefix("bytes=0-"), let last = Int64(digits: range.dropFirst(8)), last < .max { return last + 1 }
    throw UploadError(
      .giveUp, .destination,
      "PUT \(request.url): answered 308 with a Range that cannot be read: \(range.shownLine(40))",
      status: 308)
  }

  /// DELETE. The server uses 499 for an upload that was cancelled.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    let request = HTTPRequest("DELETE", try session.uploadURL())
    let response = try await with.send(request)
    guard response.status == 499 || response.saysDeleted else { throw UploadError(deleting: request, response) }
  }
}
