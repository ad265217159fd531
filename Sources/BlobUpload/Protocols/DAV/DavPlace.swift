import BlobHTTP
import Blobs

/// The place of a file on a WebDAV server: its name, and the temporary names for sending it.
///
/// Each try, which is one PUT, has its own temporary name. The request of an earlier try may still be running at the
/// server, for example because a proxy still delivers bytes that it had buffered: it would write into the file of the
/// next try.
struct DavPlace: Sendable {
  let url: HTTPURL
  /// An existing folder, below which folders may be created.
  let root: HTTPURL
  let length: Int64?
  let contentType: String
  let overwrites: Bool
  /// Number of tries, including those of earlier runs.
  var tries = 0
  /// The file was sent directly to its name, possibly in an earlier run: the file there may be a part of it.
  var wasSentStraight = false
  /// The tries whose temporary names may exist at the server, in order, each by the unique part of its name. "" stands
  /// for the single name that releases up to 1.0 used for all tries.
  var leftovers: [String] = []
  /// The leftovers that the server may still move, because a MOVE of them had no answer.
  var unanswered = UnansweredMoves()
  private var oldTemporary: HTTPURL?
  /// The version that the server reported when the file got its name, "" if none: only temporary files remain to be
  /// deleted. nil: the file does not have its name yet.
  var stored: String?

  /// From this number of temporary names on, another try deletes the oldest first.
  private static let manyLeftovers = 20
  /// Maximum number of temporary names to remember, if a server deletes none of them.
  private static let mostLeftovers = 1000
  /// Limits a number from the journal, so that a damaged one cannot cause an endless loop.
  private static let mostTries = 1_000_000
  /// Modification time of the file in seconds since 1970; nil: not sent.
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
    length = session.length
    contentType = state["type"] ?? "application/octet-stream"
    overwrites = state["overwrite"] != nil
    modified = state["modified"]
    wasSentStraight = state["straight"] != nil
    stored = state["stored"]
    unanswered = UnansweredMoves(state["moves"])
    tries = min(max(0, state["tries"].flatMap { Int($0) } ?? 0), Self.mostTries)
    if let kept = state["leftovers"] {
      leftovers = kept.split(separator: " ").map { String($0) }.filter(Self.isTry).suffix(Self.mostLeftovers)
    } else if let mark = state["mark"], Self.isTry(mark) {
      // In an earlier format, the tries of an upload had a common mark and a number.
      let first = state["first"].flatMap { Int($0) } ?? tries - Self.manyLeftovers + 1
      let numbers = min(max(1, first, tries - Self.mostLeftovers + 1), tries + 1)..<(tries + 1)
      leftovers = numbers.map { "\(mark)-\($0)" }
    } else if state["chunks"] == nil, let old = place("url") {
      // A session of release 1.0 and earlier has one temporary name for all tries.
      (oldTemporary, leftovers) = (old, [""])
    }
  }

  var session: UploadSession {
    var state = [
      "target": url.text, "root": root.text, "type": contentType, "tries": String(tries),
      "leftovers": leftovers.filter { !$0.isEmpty }.joined(separator: " "),
    ]
    if overwrites { state["overwrite"] = "true" }
    if wasSentStraight { state["straight"] = "true" }
    state["modified"] = modified
    state["stored"] = stored
    state["moves"] = unanswered.text
    var session = UploadSession(state: state)
    session.length = length
    return session
  }

  /// A hidden name with an extension that servers accept: Nextcloud forbids `.part` and `.filepart`.
  func temporary(_ name: String) -> HTTPURL {
    if name.isEmpty, let oldTemporary { return oldTemporary }
    return url.folder.appending(pathBytes: ".fullbore-\(name).tmp".utf8)
  }

  /// A random name, so that no other try has the same one, not even of another client with a copy of the journal.
  private static func newTry() -> String {
    let digits = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Whether a name from the journal is valid for a try. Any other text could form the name of another file.
  private static func isTry(_ name: some StringProtocol) -> Bool {
    !name.isEmpty && name.utf8.allSatisfy { $0 == UInt8(ascii: "-") || Character(Unicode.Scalar($0)).isHexDigit }
  }

  // MARK: Sending

  /// Sends `body` under a temporary name, checks it at the server, and moves it to its name. Temporary files of earlier
  /// tries are deleted after success or a final failure. `asksBeforeMove`: the name is queried again before the move.
  mutating func publish(
    _ body: BlobSlice, asksBeforeMove: Bool = false, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let result: UploadResult
    do throws(UploadError) {
      result = try await attempt(body, asksBeforeMove: asksBeforeMove, folders, with)
    } catch {
      // A cancelled task cannot send requests; the journal contains the names.
      if error.recovery == .giveUp, error.side != .cancelled { await clearAfterFailure(folders, with) }
      throw error
    }
    return try await finish(result, folders, with)
  }

  /// Like `publish`, after a query for the name: it may be taken, or the response to an earlier successful try may have
  /// been lost.
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
    try await replaceOlderVersions(by: body, folders, with)
    let temporary = try await putAside(body, folders, with)
    if asksBeforeMove, let found = try await find(body, with) { return found }
    do {
      try await giveName(to: temporary, folders, with)
    } catch {
      if error.status == 412, !overwrites { return try await taken(body, with) }
      // Some servers refuse to move a file to the name of a folder with other statuses.
      let error = await with.explained(error, at: url)
      guard let status = error.status, [405, 501].contains(status) else { throw error }
      folders.noteNoMove()
      return try await putStraight(body, folders, with)
    }
    forget(temporary)
    return try await result(of: body, movedFrom: temporary, with)
  }

  /// Returns the temporary name of a new try. The journal has it before the server gets it, so that `abort` can delete
  /// it.
  mutating func begin(_ with: UploadContext) async throws(UploadError) -> HTTPURL {
    tries += 1
    let new = Self.newTry()
    if leftovers.count >= Self.manyLeftovers {
      let oldest = leftovers.firstIndex { unanswered.wait(for: $0) == nil }
      // A name that cannot be deleted now stays in the journal, and is deleted once the file has its own name.
      if let oldest, (try? await delete(temporary(leftovers[oldest]), with)) != nil {
        leftovers.remove(at: oldest)
      } else if leftovers.count >= Self.mostLeftovers {
        leftovers.removeFirst()
      }
    }
    leftovers.append(new)
    with.opened(session)
    try await with.events.makeDurable()
    return temporary(new)
  }

  /// Sends the file to a new temporary name, and checks it there.
  mutating func putAside(
    _ body: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    let temporary = try await begin(with)
    let tag = try await putAside(body, as: temporary, folders, with)
    try await check(temporary, tag, body, with)
    return temporary
  }

  /// Sends the file to its temporary name, and returns the ETag from the response, if any.
  private mutating func putAside(
    _ body: BlobSlice, as temporary: HTTPURL, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> String? {
    var request = HTTPRequest("PUT", temporary, ["Content-Type": contentType])
    request.headers[ModificationTime.field] = modified
    try await folders.makeAhead(url.folder, for: body, with)
    var response = try await with.sendOnce(&request, body)
    // After a response the request has ended, so the name can be used again.
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

  /// Throws unless the server has the bytes that were sent, unchanged since then.
  private func check(
    _ temporary: HTTPURL, _ tag: String?, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) {
    var tag = tag
    var headers = try await look(at: temporary, body, with)
    if modified != nil, tag != headers["ETag"] {
      // Some servers, such as rclone, respond with the ETag from before they set the modification time of the request.
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
      // The temporary file no longer exists: someone has deleted it, or a response was lost.
      if response.status == 404 { error.recovery = .resync }
      throw error
    }
  }

  /// Called when the folder exists, so a 409 says nothing about the name.
  func refusal(_ request: HTTPRequest, _ response: HTTPResponse) -> UploadError {
    var error = UploadError(creating: request, response)
    if response.status == 409 {
      error.status = nil
      error.message = "\(request.method) \(request.url): answered 409, though its folder is there"
    }
    return error
  }

  /// Called when no file with this temporary name exists at the server.
  mutating func forget(_ temporary: HTTPURL) {
    for name in leftovers where self.temporary(name) == temporary { unanswered.remove(name) }
    leftovers = leftovers.filter { self.temporary($0) != temporary }
  }
}

extension BytePath {
  /// Whether this is a name that uploads by WebDAV give their files before these are whole.
  package var isTemporaryUpload: Bool {
    let (begin, end) = (Array(".fullbore-".utf8), Array(".tmp".utf8))
    guard bytes.starts(with: begin), bytes.reversed().starts(with: end.reversed()) else { return false }
    let digits = bytes.dropFirst(begin.count).dropLast(end.count)
    return digits.count == 16 && digits.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
  }
}
