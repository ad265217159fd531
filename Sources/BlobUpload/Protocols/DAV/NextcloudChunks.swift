import BlobHTTP
import Blobs

/// An upload of a large file to a Nextcloud server in chunks, which it keeps for a day: chunked upload, version 2.
/// nextcloud/documentation, developer_manual/client_apis/WebDAV/chunking.
///
/// A chunk exists completely or not at all, and its name is its number. PROPFIND returns the existing chunks.
struct NextcloudChunks: Sendable {
  private let place: DavPlace
  /// The folder of the chunks.
  private let folder: HTTPURL
  /// Sizes of the chunks that were sent, from the first one on: a chunk counts as stored only if the server has as many
  /// bytes.
  private var sizes: ChunkSizes

  private static let files = "/remote.php/dav/files/"
  private static let mostChunks = 10_000

  /// Whether `url` belongs to the files of a Nextcloud server.
  static func isSpoken(at url: HTTPURL) -> Bool { url.path.contains(files) }

  /// 10,000 chunks of 5 MB to 5 GB. Each request contains the total length.
  static func limits(wholeUpTo: Int64) -> PartLimits {
    PartLimits(
      smallest: 5 << 20, largest: 5_000_000_000, usual: 64 << 20, count: mostChunks, needsLength: true,
      firstPart: wholeUpTo
    )
  }

  /// A new upload; nil if `target` is not a file of a Nextcloud user.
  init?(_ target: UploadTarget) {
    guard let start = target.url.path.firstRange(of: Self.files) else { return nil }
    let user = target.url.path[start.upperBound...].prefix { $0 != "/" }
    let mark = (0..<2).map { _ in String(UInt64.random(in: 0...UInt64.max), radix: 16) }.joined()
    let path = "\(target.url.path[..<start.lowerBound])/remote.php/dav/uploads/\(user)/fullbore-\(mark)/"
    guard !user.isEmpty, let folder = target.url.resolve(path) else { return nil }
    self.init(DavPlace(target), folder, ChunkSizes())
  }

  /// nil if this is another kind of session.
  init?(_ session: UploadSession) throws(UploadError) {
    guard let text = session.state["chunks"] else { return nil }
    let place = try DavPlace(session)
    guard let sizes = ChunkSizes(text), sizes.bytes <= place.length ?? .max else {
      throw UploadError(.restart, .journal, "the journal has chunks (\(text.prefix(100))) that the file cannot have")
    }
    self.init(place, try session.uploadURL(), sizes)
  }

  private init(_ place: DavPlace, _ folder: HTTPURL, _ sizes: ChunkSizes) {
    (self.place, self.folder, self.sizes) = (place, folder, sizes)
  }

  private var count: Int { sizes.count }

  var session: UploadSession {
    var session = place.session
    session.state["url"] = folder.text
    session.state["chunks"] = sizes.text
    return session
  }

  /// MKCOL. The journal stores the session before, so that no folder is left behind unknown.
  func open(_ with: UploadContext) async throws(UploadError) {
    with.opened(session)
    try await with.events.makeDurable()
    let request = request("MKCOL", folder)
    let response = try await with.send(request)
    guard response.isSuccess || response.status == 405 else { throw UploadError(creating: request, response) }
  }

  /// Whether the name already has the same bytes; queried before the first chunk.
  func find(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult? {
    count > 0 ? nil : try await lookFor(body, with)
  }

  private func lookFor(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult? {
    do throws(UploadError) {
      guard let found = try await place.find(body, with) else { return nil }
      try? await clear(with)  // The chunks expire.
      return found
    } catch {
      throw await withdrawn(error, with)
    }
  }

  mutating func put(
    _ part: Part, _ body: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> PartReceipt {
    var request = request("PUT", chunk(count + 1))
    // The size is recorded before the chunk is sent, because the response may be lost.
    sizes.append(part.length ?? 0)
    with.opened(session)
    let response = try await with.send(following: &request, body: body)
    guard response.saysStored else {
      // The upload has expired, or the folder for the file was removed: both have the same status.
      if response.status == 404 { folders.forget(place.url.folder) }
      let error = refusal(request, response)
      throw error.recovery == .restart ? await withdrawn(error, with) : error
    }
    return PartReceipt(number: part.number, start: part.start, held: part.length ?? 0)
  }

  /// The name for the file.
  var url: HTTPURL { place.url }
  var overwrites: Bool { place.overwrites }

  /// Joins the chunks to the file. An existing file under the name is examined by a new upload; `asks`: also before the
  /// join.
  func assemble(asks: Bool, _ folders: DavFolders, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    if asks, let whole = with.whole, let found = try await lookFor(whole, with) { return found }
    var replacesFile = false
    if place.overwrites {
      do throws(UploadError) { replacesFile = try await with.refuseFolder(at: url) } catch {
        throw await withdrawn(error, with)
      }
    }
    var request = request("MOVE", folder.appending(pathBytes: ".file".utf8))
    request.headers["Overwrite"] = replacesFile ? "T" : "F"
    request.headers[ModificationTime.field] = place.modified
    let response = try await with.send(following: &request)
    guard response.saysStored else {
      if response.status == 409 {
        folders.forget(place.url.folder)
        try await folders.make(place.url.folder, with)
      }
      throw await withdrawn(refusal(request, response), with)
    }
    do throws(UploadError) {
      let whole = with.whole ?? BlobSlice(DataSource([]), length: place.length)
      return place.result(try await place.look(at: place.url, whole, with))
    } catch {
      // The chunks no longer exist. A new upload compares the file under the name.
      var error = error
      if error.recovery == .resync { error.recovery = .restart }
      throw error
    }
  }

  private func refusal(_ request: HTTPRequest, _ response: HTTPResponse) -> UploadError {
    var error = UploadError(session: request, response)
    // 404 means that the upload has expired.
    if response.status == 403 { error.recovery = .giveUp }
    if response.status == 412 { error.recovery = .restart }
    return error
  }

  /// Returns `error`, after deleting the upload at the server if the error is final for this file, or a new upload
  /// follows.
  private func withdrawn(_ error: UploadError, _ with: UploadContext) async -> UploadError {
    let isOver = error.recovery == .restart || (error.recovery == .giveUp && error.side == .file)
    if isOver { try? await clear(with) }  // The upload expires.
    return error
  }

  /// PROPFIND: the server's offset, from the sizes of its chunks. 404: they were joined, or no longer exist.
  mutating func held(_ with: UploadContext) async throws(UploadError) -> Held {
    var request = HTTPRequest("PROPFIND", folder, ["Depth": "1"])
    let listing = DavListingText()
    let response = try await with.send(
      following: &request,
      Exchange(received: { bytes throws(BlobError) in try listing.append(bytes) }))
    guard response.isSuccess else { throw UploadError(session: request, response) }
    let there = DavListing.sizes(in: listing.text)
    var whole = ChunkSizes()
    // Chunks from the first one on that is missing or has another size are sent again.
    for size in sizes.all {
      if there[chunk(whole.count + 1).path] != size { break }
      whole.append(size)
    }
    sizes = whole
    return .upTo(whole.bytes, session)
  }

  func clear(_ with: UploadContext) async throws(UploadError) {
    let request = HTTPRequest("DELETE", folder)
    let response = try await with.send(request)
    guard response.saysDeleted else { throw UploadError(deleting: request, response) }
  }

  private func chunk(_ number: Int) -> HTTPURL {
    let digits = String(number)
    return folder.appending(pathBytes: (String(repeating: "0", count: max(0, 5 - digits.count)) + digits).utf8)
  }

  private func request(_ method: String, _ url: HTTPURL) -> HTTPRequest {
    var request = HTTPRequest(method, url, ["Destination": place.url.text])
    if method != "MKCOL", let length = place.length { request.headers["OC-Total-Length"] = String(length) }
    return request
  }
}
