import BlobHTTP
import Blobs

/// Where a file goes on a WebDAV server: its name, and the temporary one beside it.
struct DavPlace: Sendable {
  let url: HTTPURL
  let temporary: HTTPURL
  /// The folder that is there, below which folders may be made.
  let root: HTTPURL
  let length: Int64?
  let contentType: String
  let overwrites: Bool

  init(_ target: UploadTarget) {
    url = target.url
    root = target.endpoint.folder
    // The same at every attempt, so that each takes the place of the one before.
    let mark = Digest.hex(of: Array(target.url.text.utf8), .sha256).prefix(16)
    temporary = target.url.folder.appending(pathBytes: ".fullbore-\(mark).part".utf8)
    length = target.length
    contentType = target.contentType
    overwrites = target.overwrite
  }

  init(_ session: UploadSession) throws(UploadError) {
    let state = session.state
    func place(_ key: String) -> HTTPURL? { state[key].flatMap { HTTPURL($0) } }
    guard let url = place("target"), let temporary = place("temporary") ?? place("url"), let root = place("root") else {
      throw UploadError(.restart, .journal, "the upload's URL is missing from the journal")
    }
    self.url = url
    self.temporary = temporary
    self.root = root
    length = state["length"].flatMap { Int64($0) }
    contentType = state["type"] ?? "application/octet-stream"
    overwrites = state["overwrite"] != nil
  }

  var session: UploadSession {
    var state = ["url": temporary.text, "target": url.text, "root": root.text, "type": contentType]
    if let length { state["length"] = String(length) }
    if overwrites { state["overwrite"] = "true" }
    return UploadSession(state: state)
  }

  // MARK: Sending

  /// PUT, size looked at, MOVE.
  func publish(_ body: BlobSlice, _ folders: DavFolders, _ with: UploadContext) async throws(UploadError)
    -> UploadResult
  {
    if !folders.canMove { return try await put(body, folders, with) }
    let tag = try await putAside(body, folders, with)
    let size = try await check(tag, with)
    do throws(UploadError) {
      try await move(with)
    } catch {
      switch error.status {
      case 405, 501:
        folders.noteNoMove()
        try? await clear(with)  // it is only in the way
        return try await put(body, folders, with)
      case 412:
        try? await clear(with)  // as above
        return try await same(body, as: size, with)
      default: throw error
      }
    }
    try await checkName(with)
    return result
  }

  private var result: UploadResult { UploadResult(location: url.description) }

  /// The ETag that the server gave it, if any.
  private func putAside(
    _ body: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> String? {
    var request = HTTPRequest("PUT", temporary, ["Content-Type": contentType])
    var response = try await with.send(following: &request, body: body)
    if [404, 409].contains(response.status) {
      try await folders.make(temporary.folder, with)
      response = try await with.send(following: &request, body: body)
    }
    guard response.isSuccess else { throw refusal(request, response) }
    return response.headers["ETag"]
  }

  /// The size that the server says it has, which must be the one that was sent; nil where it says none.
  private func check(_ tag: String?, _ with: UploadContext) async throws(UploadError) -> Int64? {
    let request = HTTPRequest("HEAD", temporary)
    let response = try await with.send(request)
    guard response.isSuccess else {
      var error = UploadError(request, response)
      if error.recovery == .giveUp, response.status == 404 { error.recovery = .resync }
      throw error
    }
    let size = response.headers.bytes("Content-Length")
    if let size, let length, size != length {
      throw UploadError(
        .resync, .file, "HEAD \(temporary): the server has \(size) bytes, and was sent \(length)", status: nil)
    }
    if let tag, let now = response.headers["ETag"], tag != now, ![tag, now].contains(where: { $0.hasPrefix("W/") }) {
      throw UploadError(
        .resync, .file,
        "HEAD \(temporary): its ETag is \(now), and was \(tag) when we had sent it: someone else writes there")
    }
    return size
  }

  private func move(_ with: UploadContext) async throws(UploadError) {
    var request = HTTPRequest("MOVE", temporary, ["Destination": url.text, "Overwrite": overwrites ? "T" : "F"])
    let response = try await with.send(following: &request)
    if response.status == 207 {
      throw UploadError(
        .giveUp, .file, "MOVE \(temporary): only a part of it was moved (207)", status: response.status)
    }
    guard response.isSuccess else {
      var error = refusal(request, response)
      // What we have sent is gone: someone has cleared it away, or an answer was lost.
      if response.status == 404 { error.recovery = .resync }
      throw error
    }
  }

  /// Some servers take `Destination` apart once more, and cut the name where another URL would have a query.
  private func checkName(_ with: UploadContext) async throws(UploadError) {
    let isPlain = PercentCoding.decoded(url.path.utf8).allSatisfy { $0 >= 0x20 && !";?#%".utf8.contains($0) }
    if isPlain { return }
    let request = HTTPRequest("HEAD", url)
    let response = try await with.send(request)
    if response.isSuccess { return }
    guard [404, 410].contains(response.status) else { throw UploadError(request, response) }
    throw UploadError(
      .giveUp, .file,
      "MOVE \(temporary): the server says that \(url) is there now, and it is not: it has given it another name. "
        + "It does not take names with characters like these")
  }

  /// Where names cannot be changed: straight to the name, which must be free.
  private func put(
    _ body: BlobSlice, _ folders: DavFolders, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    var request = HTTPRequest("PUT", url, ["Content-Type": contentType])
    if !overwrites { request.headers["If-None-Match"] = "*" }
    var response = try await with.send(following: &request, body: body)
    if [404, 409].contains(response.status) {
      try await folders.make(url.folder, with)
      response = try await with.send(following: &request, body: body)
    }
    if response.status == 412, !overwrites { return try await same(body, as: nil, with) }
    guard response.isSuccess else { throw refusal(request, response) }
    return result
  }

  /// 409, where the folder is there, is no word about the name.
  private func refusal(_ request: HTTPRequest, _ response: HTTPResponse) -> UploadError {
    var error = UploadError(creating: request, response)
    if response.status == 409 {
      error.status = nil
      error.message = "\(request.method) \(request.url): answered 409, though its folder is there"
    }
    return error
  }

  // MARK: A name that is taken

  /// Success if there are the very bytes of `body` under the name; nil if there is nothing, or it will be replaced.
  /// Throws if there are others.
  func find(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult? {
    if overwrites { return nil }
    let request = HTTPRequest("HEAD", url)
    let response = try await with.send(request)
    if [404, 410].contains(response.status) { return nil }
    guard response.isSuccess else { throw UploadError(request, response) }
    return try await same(body, as: response.headers.bytes("Content-Length"), with)
  }

  /// Reads back what has the name and compares it.
  private func same(_ body: BlobSlice, as size: Int64?, _ with: UploadContext) async throws(UploadError) -> UploadResult
  {
    if let size, let length, size != length {
      throw UploadError(
        .giveUp, .file, "\(url): another file of \(size) bytes has that name, and this one has \(length)", status: 409)
    }
    do {
      try await with.compare(body, with: url)
    } catch {
      // A connection that broke says nothing about the bytes.
      guard error.recovery == .giveUp, error.side == .file, error.status == nil else { throw error }
      throw UploadError(.giveUp, .file, "\(url): another file has that name (\(error.message))", status: 409)
    }
    return result
  }

  /// Deletes the temporary name; one that is gone already will do.
  func clear(_ with: UploadContext) async throws(UploadError) {
    let request = HTTPRequest("DELETE", temporary)
    let response = try await with.send(request)
    guard response.isSuccess || [404, 410].contains(response.status) else { throw UploadError(request, response) }
  }
}
