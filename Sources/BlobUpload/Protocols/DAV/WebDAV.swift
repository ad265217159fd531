import BlobHTTP
import Blobs

/// WebDAV: one PUT of the whole under a temporary name in the same folder, which is moved to its own name once its size
/// is found right. Each try has a temporary name of its own, which the journal knows. RFC 4918.
///
/// A name never stands for a part of a file, whatever the server does with a PUT that is cut off. Nothing can be resumed:
/// partial PUTs mean different things to different servers, and some take a piece for the whole. Nextcloud has chunks
/// for that: a large file for `…/remote.php/dav/files/USER/…` goes in those, and on from the last that is there.
public struct WebDAV: UploadProtocol {
  public let name = "dav"

  /// Of a file over this many bytes, the name that it is to have is looked at before any of it is sent.
  public var wholeUpTo: Int64
  private let folders = DavFolders()
  private let conditions = DavConditions()

  public init(wholeUpTo: Int64 = 4 << 20) { self.wholeUpTo = wholeUpTo }

  public var traits: UploadTraits { UploadTraits(leavesTemporaryFiles: true, queries: .dropped) }

  /// OPTIONS; only a demand for credentials, or a failure, is an error: nginx takes all we send, and no OPTIONS.
  public func discover(_ target: UploadTarget, _ with: UploadContext) async throws(UploadError) -> PartLimits {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    let response = try await with.send(request)
    if let refusal = UploadError(asking: request, response) { throw refusal }
    noteMethods(of: response)
    return limits(at: target.endpoint)
  }

  /// A server whose `Allow` lists neither MOVE nor anything else that is WebDAV's alone takes files under their own names
  /// only. The `Allow` of a WebDAV server lists MKCOL or LOCK for a place that is not there yet, and no MOVE.
  private func noteMethods(of response: HTTPResponse) {
    let methods = response.headers.list("Allow")
    if methods.contains("PUT"), !methods.contains(where: { ["MOVE", "MKCOL", "LOCK", "PROPFIND"].contains($0) }) {
      folders.noteNoMove()
    }
  }

  func limits(at endpoint: HTTPURL) -> PartLimits {
    if NextcloudChunks.isSpoken(at: endpoint) { return NextcloudChunks.limits(wholeUpTo: wholeUpTo) }
    // A part size that is asked for must not cut it.
    return PartLimits(smallest: .max, firstPart: wholeUpTo)
  }

  /// Whether an OPTIONS answer is that of a WebDAV server. RFC 4918 §10.1.
  static func isOffered(by headers: HTTPHeaders) -> Bool { headers.list("DAV").contains("1") }

  /// With a small file: sends it. For a large one only the names are agreed upon.
  public func create(_ target: UploadTarget, first: FirstPart?, _ with: UploadContext)
    async throws(UploadError) -> Held
  {
    let place = DavPlace(target)
    try await folders.make(for: place, with)
    if let first { return .finished(try await publish(first.body, at: place, with)) }
    if let chunks = NextcloudChunks(target) {
      // A chunk for a file whose folder is missing is refused, as one whose upload has expired.
      try await folders.make(target.url.folder, with)
      try await chunks.open(with)
      return .upTo(0, chunks.session)
    }
    with.opened(place.session)
    return .upTo(0, place.session)
  }

  /// A PUT cannot be asked how far it got. What is published already is found when it is sent again.
  public func held(by session: UploadSession, _ with: UploadContext) async throws(UploadError) -> Held {
    if var chunks = try NextcloudChunks(session) { return try await chunks.held(with) }
    let place = try DavPlace(session)
    // Where only temporary files are left to be deleted, there is nothing to send.
    return .upTo(place.stored == nil ? 0 : place.length ?? 0, place.session)
  }

  public func send(_ part: Part, _ body: BlobSlice, to session: UploadSession, _ with: UploadContext)
    async throws(UploadError) -> Sent
  {
    if var chunks = try NextcloudChunks(session) {
      // The whole is compared, not the part.
      let whole = BlobSlice(
        body.source, length: session.state["length"].flatMap { Int64($0) }, validator: body.validator)
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
      // Two files of one push may have the same name to the server.
      return try await with.names.alone(at: FoldedName(chunks.url)) { hasWaited async throws(UploadError) in
        try await chunks.assemble(asks: !chunks.overwrites && (hasWaited || !conditions.areHeeded), folders, with)
      }
    }
    var place = try DavPlace(session)
    if place.stored != nil, let whole = with.whole { return try await place.finishStored(whole, folders, with) }
    // Nothing is left to send of a file without bytes.
    return try await publish(BlobSlice(DataSource([])), at: place, with)
  }

  /// Whether a name must be asked for before it is given, since the server is not known to heed the condition of the MOVE.
  private func asksFirst(_ place: inout DavPlace, _ with: UploadContext) async throws(UploadError) -> Bool {
    // Where there is no MOVE, `putStraight` asks.
    if place.overwrites || conditions.areHeeded || !folders.canMove { return false }
    if conditions.noteQuestion(), try await place.tryCondition(with) == true { conditions.noteHeeded() }
    return !conditions.areHeeded
  }

  /// Publishes a file whose name was not asked for before. Where the server heeds the condition of the MOVE, that is enough.
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

  /// DELETE of the temporary names, or of the chunks.
  public func abort(_ session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    if let chunks = try NextcloudChunks(session) { return try await chunks.clear(with) }
    if let refused = try await DavPlace(session).clear(with) { throw refused.error }
  }
}
