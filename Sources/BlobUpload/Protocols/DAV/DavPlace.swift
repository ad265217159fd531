import BlobHTTP
import Blobs

/// Where a file goes on a WebDAV server: its name, and the temporary names beside it that it is sent under.
///
/// Each try, which is one PUT, has a temporary name of its own. The request of an earlier try may still run at the server,
/// for example where a proxy goes on delivering what it had taken: it would write into the file of the next try.
struct DavPlace: Sendable {
  let url: HTTPURL
  /// The folder that is there, below which folders may be made.
  let root: HTTPURL
  let length: Int64?
  let contentType: String
  let overwrites: Bool
  /// Tries that were begun, in earlier runs too.
  var tries = 0
  /// The file was sent to its own name, in an earlier run perhaps: what is there may be a part of it.
  var wasSentStraight = false
  /// The tries whose temporary names may exist at the server, in their order, each by what its name alone has. "" stands for
  /// the one name that a release up to 1.0 had for all tries.
  var leftovers: [String] = []
  private var oldTemporary: HTTPURL?
  /// The version that the server gave the file when it got its name, "" for none: only temporary files are left to be
  /// deleted. nil: it does not have its name yet.
  var stored: String?

  /// From so many temporary names on, another try deletes the oldest first.
  private static let manyLeftovers = 20
  /// Temporary names that are remembered at the most, where a server deletes none of them.
  private static let mostLeftovers = 1000
  /// A journal cannot make us count for ever.
  private static let mostTries = 1_000_000
  /// Seconds since 1970 when the file was last written; nil: not told.
  let modified: String?

  init(_ target: UploadTarget) {
    url = target.url
    root = target.endpoint.folder
    length = target.length
    contentType = target.contentType
    overwrites = target.overwrite
    modified = target.modificationTime?.webDAV
  }

  init(_ session: UploadSession) throws(UploadError) {
    let state = session.state
    func place(_ key: String) -> HTTPURL? { state[key].flatMap { HTTPURL($0) } }
    guard let url = place("target"), let root = place("root") else {
      throw UploadError(.restart, .journal, "the upload's URL is missing from the journal")
    }
    self.url = url
    self.root = root
    length = state["length"].flatMap { Int64($0) }
    contentType = state["type"] ?? "application/octet-stream"
    overwrites = state["overwrite"] != nil
    modified = state["modified"]
    wasSentStraight = state["straight"] != nil
    stored = state["stored"]
    tries = min(max(0, state["tries"].flatMap { Int($0) } ?? 0), Self.mostTries)
    if let kept = state["leftovers"] {
      leftovers = kept.split(separator: " ").map { String($0) }.filter(Self.isTry).suffix(Self.mostLeftovers)
    } else if let mark = state["mark"], Self.isTry(mark) {
      // In an earlier format the tries of an upload had one mark, and were counted.
      let first = state["first"].flatMap { Int($0) } ?? tries - Self.manyLeftovers + 1
      let numbers = min(max(1, first, tries - Self.mostLeftovers + 1), tries + 1)..<(tries + 1)
      leftovers = numbers.map { "\(mark)-\($0)" }
    } else if state["chunks"] == nil, let old = place("url") {
      // A session of release 1.0 and before has one temporary name for all tries.
      (oldTemporary, leftovers) = (old, [""])
    }
  }

  var session: UploadSession {
    var state = [
      "target": url.text, "root": root.text, "type": contentType, "tries": String(tries),
      "leftovers": leftovers.filter { !$0.isEmpty }.joined(separator: " "),
    ]
    if let length { state["length"] = String(length) }
    if overwrites { state["overwrite"] = "true" }
    if wasSentStraight { state["straight"] = "true" }
    state["modified"] = modified
    state["stored"] = stored
    return UploadSession(state: state)
  }

  /// Hidden, and of a kind that servers take: Nextcloud forbids `.part` and `.filepart`.
  func temporary(_ name: String) -> HTTPURL {
    if name.isEmpty, let oldTemporary { return oldTemporary }
    return url.folder.appending(pathBytes: ".fullbore-\(name).tmp".utf8)
  }

  /// Random: no other try has the same temporary name, nor one of another client that has a copy of the journal.
  private static func newTry() -> String {
    let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Whether a journal may name a try so. Anything else could make the name of another file.
  private static func isTry(_ name: some StringProtocol) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy { $0 == UInt8(ascii: "-") || Character(Unicode.Scalar($0)).isHexDigit }
  }

  // MARK: Sending

  /// Sends `body` under a temporary name, looks at what the server has, and gives that the name. Deletes what earlier
  /// tries have left once all is well, or nothing more can be done. `asksBeforeMove`: the name is asked for once more before
  /// it is given.
  mutating func publish(
    _ body: BlobSlice, asksBeforeMove: Bool = false, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let result: UploadResult
    do throws(UploadError) {
      result = try await attempt(body, asksBeforeMove: asksBeforeMove, folders, with)
    } catch {
      // A task that was cancelled can send nothing more: the journal knows the names.
      if error.recovery == .giveUp, error.side != .cancelled { await clearAfterFailure(folders, with) }
      throw error
    }
    return try await finish(result, folders, with)
  }

  /// As `publish`, once the name was asked for: it may be taken, or may have been given by an earlier try whose answer was
  /// lost.
  mutating func publishUnlessThere(
    _ body: BlobSlice, asksBeforeMove: Bool = false, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let found: UploadResult?
    do throws(UploadError) {
      found = try await find(body, with)
    } catch {
      if error.recovery == .giveUp, error.side != .cancelled { await clearAfterFailure(folders, with) }
      throw error
    }
    guard let found else { return try await publish(body, asksBeforeMove: asksBeforeMove, folders, with) }
    return try await finish(found, folders, with)
  }

  private mutating func attempt(
    _ body: BlobSlice, asksBeforeMove: Bool, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    if !folders.canMove { return try await putStraight(body, folders, with) }
    let temporary = try await begin(with)
    let tag = try await putAside(body, as: temporary, folders, with)
    try await check(temporary, tag, body, with)
    if asksBeforeMove, let found = try await find(body, with) { return found }
    do {
      try await giveName(to: temporary, with)
    } catch {
      switch error.status {
      case 405, 501:
        folders.noteNoMove()
        return try await putStraight(body, folders, with)
      case 412 where !overwrites:
        return try await taken(body, with)
      default: throw error
      }
    }
    forget(temporary)
    return try await result(of: body, movedFrom: temporary, with)
  }

  /// The temporary name of a new try. It is in the journal before the server hears of it, so that `abort` can delete it.
  mutating func begin(_ with: UploadContext) async throws(UploadError) -> HTTPURL {
    tries += 1
    let new = Self.newTry()
    if leftovers.count >= Self.manyLeftovers, let first = leftovers.first {
      // A name that cannot be deleted now stays in the journal, and is tried again once the file has its own.
      let isGone = (try? await delete(temporary(first), with)) != nil
      if isGone || leftovers.count >= Self.mostLeftovers { leftovers.removeFirst() }
    }
    leftovers.append(new)
    with.opened(session)
    try await with.events.makeDurable()
    return temporary(new)
  }

  /// The ETag that the server gave it, if any.
  private mutating func putAside(
    _ body: BlobSlice, as temporary: HTTPURL, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> String? {
    var request = HTTPRequest("PUT", temporary, ["Content-Type": contentType])
    request.headers[ModificationTime.field] = modified
    var response = try await with.sendOnce(&request, body)
    // An answer ends a request: the name can be used again.
    if [404, 409].contains(response.status) {
      try await folders.make(temporary.folder, with)
      response = try await with.sendOnce(&request, body)
    } else if response.status == 500, try await folders.makeMissing(temporary.folder, with) {
      response = try await with.sendOnce(&request, body)
    }
    guard response.saysStored else {
      if 400..<500 ~= response.status { forget(temporary) }
      throw refusal(request, response)
    }
    return response.headers["ETag"]
  }

  /// What the server has must be what was sent, and must not have changed since.
  private func check(
    _ temporary: HTTPURL, _ tag: String?, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) {
    var tag = tag
    var headers = try await look(at: temporary, body, with)
    if modified != nil, tag != headers["ETag"] {
      // Some servers, like rclone, tell the ETag that the file has before they give it the time which it was sent with.
      tag = headers["ETag"]
      headers = try await look(at: temporary, body, with)
    }
    if let tag, let now = headers["ETag"], tag != now, ![tag, now].contains(where: { $0.hasPrefix("W/") }) {
      throw UploadError(
        .resync, .file,
        "HEAD \(temporary): its ETag is \(now), and was \(tag) when we had sent it: someone else writes there")
    }
  }

  func move(
    _ temporary: HTTPURL, to place: HTTPURL, overwrites: Bool, _ with: UploadContext
  ) async throws(UploadError) {
    var request = HTTPRequest("MOVE", temporary, ["Destination": place.text, "Overwrite": overwrites ? "T" : "F"])
    let response = try await with.send(following: &request)
    if response.status == 207 {
      throw UploadError(
        .giveUp, .file, "MOVE \(temporary): only a part of it was moved (207)", status: response.status)
    }
    guard response.saysStored else {
      var error = refusal(request, response)
      // What we have sent is gone: someone has cleared it away, or an answer was lost.
      if response.status == 404 { error.recovery = .resync }
      throw error
    }
  }

  /// 409, where the folder is there, is no word about the name.
  func refusal(_ request: HTTPRequest, _ response: HTTPResponse) -> UploadError {
    var error = UploadError(creating: request, response)
    if response.status == 409 {
      error.status = nil
      error.message = "\(request.method) \(request.url): answered 409, though its folder is there"
    }
    return error
  }

  /// Nothing is at the server under this temporary name.
  private mutating func forget(_ temporary: HTTPURL) {
    leftovers = leftovers.filter { self.temporary($0) != temporary }
  }
}
