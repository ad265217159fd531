import BlobHTTP
import Blobs

// What the server has, held against what was sent.
extension DavPlace {
  /// HEAD. Throws unless the server has as many bytes at `place` as were sent of `body`.
  func look(at place: HTTPURL, _ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> HTTPHeaders {
    let sent = try sentLength(of: body)
    let request = HTTPRequest("HEAD", place)
    let response = try await with.send(request)
    guard response.isSuccess else {
      var error = UploadError(request, response)
      if error.recovery == .giveUp, response.status == 404 { error.recovery = .resync }
      throw error
    }
    if let size = response.headers.bytes("Content-Length") {
      guard let sent, size != sent else { return response.headers }
      throw UploadError(
        .resync, .file, "HEAD \(place): the server has \(size) bytes, and was sent \(sent)", status: nil)
    }
    // A server that does not tell the length is asked for the bytes, where they can be read a second time here.
    if body.source.access == .random { try await with.compareAgain(body, with: place) }
    return response.headers
  }

  /// Bytes that were read of the source for `body`.
  private func sentLength(of body: BlobSlice) throws(UploadError) -> Int64? {
    if !(body.source is OpenPart) { return body.length ?? length }
    if let read = body.source.lengthRead(from: body.start) { return read }
    throw UploadError(.resync, .file, "PUT \(url): the server answered before it was sent the end of the file")
  }

  /// What was stored under the name, with the version that `isThere` compares in a later run.
  func result(_ headers: HTTPHeaders) -> UploadResult {
    let version = DavVersion(headers).text
    return UploadResult(
      location: url.description, state: version.map { ["version": $0] } ?? [:],
      length: headers.bytes("Content-Length"))
  }

  /// Looks at the name after a MOVE. Some servers take `Destination` apart once more, and cut the name where another URL
  /// would have a query.
  func result(
    of body: BlobSlice, movedFrom temporary: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    do throws(UploadError) {
      return result(try await look(at: url, body, with))
    } catch {
      guard let status = error.status, [404, 410].contains(status), !isPlain else { throw error }
      throw UploadError(
        .giveUp, .file,
        "MOVE \(temporary): the server says that \(url) is there now, and it is not: it has given it another name. "
          + Self.refusesSuchNames)
    }
  }

  /// Whether the name has no characters that mean something in a URL, or none at all.
  var isPlain: Bool {
    PercentCoding.decoded(url.path.utf8).allSatisfy { $0 >= 0x20 && !";?#%".utf8.contains($0) }
  }
  static let refusesSuchNames =
    "It does not take names with characters like these: send the file under another name, with --name or --layout"

  // MARK: A name that is taken

  /// Success if there are the very bytes of `body` under the name; nil if there is nothing, or it will be replaced.
  /// Throws if there are others.
  func find(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult? {
    overwrites ? nil : try result(of: try await look(for: body, with))
  }

  /// What has the name.
  func look(for body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> NameInUse {
    try await with.nameInUse(url, by: body, length: length, mayBeOurs: wasSentStraight)
  }

  /// nil: the name is free, or has nothing but a part of the file.
  func result(of there: NameInUse) throws(UploadError) -> UploadResult? {
    switch there {
    case .sameBytes(let headers):
      var found = result(headers)
      found.isCompared = true
      return found
    case .nothing, .beginning: return nil
    case .hidden(let error): throw error
    }
  }

  /// The server says that the name is taken: a success if the bytes are the same.
  func taken(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    if let found = try await find(body, with) { return found }
    let message = "\(url): the server says that the name is taken, and nothing is there"
    throw isPlain
      ? UploadError(.resync, .file, message) : UploadError(.giveUp, .file, "\(message). \(Self.refusesSuchNames)")
  }
}

extension UploadContext {
  /// Reads back what is at `url`; what differs from `body` is sent again.
  func compareAgain(_ body: BlobSlice, with url: HTTPURL) async throws(UploadError) {
    do throws(UploadError) {
      try await compare(body, with: url)
    } catch {
      guard error.isDifference else { throw error }
      throw UploadError(.resync, .file, error.message, cause: error.cause)
    }
  }
}
