import BlobHTTP
import Blobs

/// WebDAV: one PUT of the whole file to a temporary name in the same folder, which is moved to its own name once its
/// size is confirmed. Each try has its own temporary name, which the journal contains. RFC 4918.
///
/// The name never has a part of a file, whatever the server does with an interrupted PUT. An upload cannot be resumed:
/// partial PUTs mean different things to different servers, and some take a part for the whole file. Nextcloud supports
/// chunks: a large file for `…/remote.php/dav/files/USER/…` is sent in chunks, and resumed after the last stored one.
public struct WebDAV: UploadProtocol {
  public let name = "dav"

  /// For a file over this many bytes, the name is queried before any byte is sent.
  public var wholeUpTo: Int64
  private let folders = DavFolders()
  private var conditions: DavConditions { folders.conditions }

  /// Creates the protocol. For a file over `wholeUpTo` bytes, the name is queried before any byte is sent.
  public init(wholeUpTo: Int64 = 4 << 20) { self.wholeUpTo = wholeUpTo }

  public var traits: UploadTraits { UploadTraits(leavesTemporaryFiles: true, queries: .dropped, repeatsDigests: true) }

  /// OPTIONS. Only a demand for credentials, or a failure, is an error: nginx supports all requests we send except
  /// OPTIONS.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> UploadOffer {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    let response = try await with.send(request)
    if let refusal = UploadError(asking: request, response) { throw refusal }
    noteMethods(of: response)
    return UploadOffer(self, limits(at: target.endpoint))
  }

  /// If `Allow` lists neither MOVE nor another WebDAV method, the server accepts files under their own names only. A
  /// WebDAV server lists MKCOL or LOCK for a URL that does not exist yet, and not MOVE.
  private func noteMethods(of response: HTTPResponse) {
    let methods = response.headers.list("Allow")
    if methods.contains("PUT"), !methods.contains(where: { ["MOVE", "MKCOL", "LOCK", "PROPFIND"].contains($0) }) {
      folders.noteNoMove()
    }
  }

  func limits(at endpoint: HTTPURL) -> PartLimits {
    if NextcloudChunks.isSpoken(at: endpoint) { return NextcloudChunks.limits(wholeUpTo: wholeUpTo) }
    // A requested part size must not split the file.
    return PartLimits(smallest: .max, firstPart: wholeUpTo)
  }

  /// Whether a response to OPTIONS comes from a WebDAV server. RFC 4918 §10.1.
  static func isOffered(by headers: HTTPHeaders) -> Bool { headers.list("DAV").contains("1") }

  /// Sends a small file. For a large file, only creates the session with its names.
  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    let place = DavPlace(target)
    try await folders.make(for: place, with)
    if let first { return .finished(try await publish(first.body, at: place, with)) }
    if place.overwrites { try await with.refuseFolder(at: place.url) }
    if let chunks = NextcloudChunks(target) {
      // A chunk for a file whose folder is missing gets the same refusal as one for an expired upload.
      try await folders.make(target.url.folder, with)
      try await chunks.open(with)
      return .upTo(0, chunks.session)
    }
    with.opened(place.session)
    return .upTo(0, place.session)
  }

  /// A PUT cannot be queried for its offset. A published file is found when the upload is repeated.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    if var chunks = try NextcloudChunks(session) { return try await chunks.held(with) }
    let place = try DavPlace(session)
    // If only temporary files remain to be deleted, no bytes remain to be sent.
    return .upTo(place.stored == nil ? 0 : place.length ?? 0, place.session)
  }

  /// Sends the whole file, or one chunk of it to Nextcloud. Throws with `.giveUp` for a part on any other server.
  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent
  {
    if var chunks = try NextcloudChunks(session) {
      // The whole file is compared, not the part.
      let whole = BlobSlice(
        body.source, length: session.length, validator: body.validator)
      if let found = try await chunks.find(whole, with) { return .finished(found) }
      let receipt = try await chunks.put(part, body, folders, with)
      return .receipt(receipt, chunks.session)
    }
    guard part.isLast, part.start == 0 else {
      throw UploadError(.giveUp, .file, "WebDAV takes a file in one piece: leave --part-size out")
    }
    let place = try DavPlace(session)
    return try await with.names.alone(at: FoldedName(place.url)) { (_) async throws(UploadError) in
      var place = place
      let asks = try await asksFirst(&place, with)
      return .finished(try await place.publishUnlessThere(body, asksBeforeMove: asks, folders, with))
    }
  }

  public func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext)
    async throws(UploadError) -> UploadResult
  {
    if let chunks = try NextcloudChunks(session) {
      // The server may treat the names of two files of one push as equal.
      return try await with.names.alone(at: FoldedName(chunks.url)) { hasWaited async throws(UploadError) in
        try await chunks.assemble(asks: !chunks.overwrites && (hasWaited || !conditions.areHeeded), folders, with)
      }
    }
    var place = try DavPlace(session)
    if place.stored != nil, let whole = with.whole { return try await place.finishStored(whole, folders, with) }
    // An empty file has no bytes left to send.
    return try await publish(BlobSlice(DataSource([])), at: place, with)
  }

  /// Whether a name must be queried before the move, since the server is not known to implement the condition of MOVE.
  /// The name of a file that may replace another one is queried by `giveName`.
  private func asksFirst(_ place: inout DavPlace, _ with: UploadContext) async throws(UploadError) -> Bool {
    // Without MOVE, `putStraight` queries the name.
    if conditions.areHeeded || !folders.canMove { return false }
    if conditions.noteQuestion(), try await place.tryCondition(with) == true { conditions.noteHeeded() }
    return !place.overwrites && !conditions.areHeeded
  }

  /// Publishes a file whose name was not queried before. If the server implements the condition of MOVE, that is
  /// sufficient.
  private func publish(
    _ body: BlobSlice, at place: DavPlace, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    try await with.names.alone(at: FoldedName(place.url)) { hasWaited async throws(UploadError) in
      var place = place
      let asks = try await asksFirst(&place, with)
      return asks || hasWaited
        ? try await place.publishUnlessThere(body, folders, with) : try await place.publish(body, folders, with)
    }
  }

  public func isThere(_ target: UploadTarget, location: String?, _ with: UploadContext) async throws(UploadError)
    -> Bool
  {
    try await with.isThere(target, since: DavVersion(journaled: location))
  }

  /// DELETE for the temporary names, or for the chunks.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    if let chunks = try NextcloudChunks(session) { return try await chunks.clear(with) }
    let place = try DavPlace(session)
    if let refused = try await place.clear(with) { throw refused.error }
    guard let (temporary, seconds) = place.awaited else { return }
    throw UploadError(
      .giveUp, .file,
      "\(temporary) is not deleted yet: a MOVE of it to \(place.url) had no answer and may still arrive, and some servers "
        + "would delete \(place.url) then. It can be deleted in \((seconds + 59) / 60) minutes")
  }
}
