import BlobHTTP
import Blobs

// Compares the server's file with the bytes that were sent.
extension DavPlace {
  /// Sends HEAD, and throws unless the length at `place` is the number of bytes sent of `body`.
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
      // Some servers report a length of 0 for every HEAD. A GET for the first byte shows the length.
      if size == 0, case .found(sent) = try await with.lengthByGet(of: place, expecting: sent) {
        var headers = response.headers
        headers["Content-Length"] = String(sent)
        return headers
      }
      throw UploadError(
        .resync, .file, "HEAD \(place): the server has \(size) bytes, and was sent \(sent)", status: nil)
    }
    // If the server reports no length, its bytes are compared, provided that the source can be read again.
    if body.source.access == .random { try await with.compareAgain(body, with: place) }
    return response.headers
  }

  /// The number of bytes that were read of the source for `body`.
  private func sentLength(of body: BlobSlice) throws(UploadError) -> Int64? {
    if !(body.source is OpenPart) { return body.length ?? length }
    if let read = body.source.lengthRead(from: body.start) { return read }
    throw UploadError(.resync, .file, "PUT \(url): the server answered before it was sent the end of the file")
  }

  /// The result for the file under its name, with the version that `isThere` compares in a later run.
  func result(_ headers: HTTPHeaders) -> UploadResult {
    let version = DavVersion(headers).text
    return UploadResult(
      location: url.description, state: version.map { ["version": $0] } ?? [:],
      length: headers.bytes("Content-Length"))
  }

  /// Checks the name after a MOVE. Some servers decode `Destination` twice, and truncate the name at a character that
  /// starts a query.
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

  /// Whether the name has no characters with a special meaning in a URL, and no control characters.
  var isPlain: Bool {
    PercentCoding.decoded(url.path.utf8).allSatisfy { $0 >= 0x20 && !";?#%".utf8.contains($0) }
  }
  static let refusesSuchNames =
    "It does not take names with characters like these: send the file under another name, with --name or --layout"

  // MARK: Taken names

  /// Success if the name has the same bytes as `body`; nil if it has no file, or the file will be replaced.
  /// Throws if the name has other bytes.
  func find(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult? {
    overwrites ? nil : try result(of: try await look(for: body, with))
  }

  /// Queries the server for the file under the name.
  func look(for body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> NameInUse {
    let there: NameInUse
    do throws(UploadError) {
      there = try await with.nameInUse(url, by: body, length: length, mayBeOurs: wasSentStraight)
    } catch {
      // A folder may be answered with a page that lists it.
      throw await with.explained(error, at: url)
    }
    switch there {
    // Other servers refuse HEAD and GET for a folder.
    case .hidden(let error): return .hidden(await with.explained(error, at: url))
    // Nextcloud answers GET of a folder with no bytes.
    case .sameBytes where (length ?? 0) == 0: try await with.refuseFolder(at: url)
    default: break
    }
    return there
  }

  /// nil: the name is free, or has only a part of the file.
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

  /// Called if the server reports that the name is taken. Success if the bytes are the same.
  func taken(_ body: BlobSlice, _ with: UploadContext) async throws(UploadError) -> UploadResult {
    if let found = try await find(body, with) { return found }
    // Some servers answer 404 to HEAD and GET for a folder.
    try await with.refuseFolder(at: url)
    throw takenByNothing
  }

  var takenByNothing: UploadError {
    let message = "\(url): the server says that the name is taken, and nothing is there"
    return isPlain
      ? UploadError(.resync, .file, message)
      : UploadError(.giveUp, .file, "\(message): it means a file of another name. \(Self.refusesSuchNames)")
  }
}

extension UploadContext {
  /// Reads back the file at `url`. If it differs from `body`, throws with `.resync`, so that it is sent again.
  func compareAgain(_ body: BlobSlice, with url: HTTPURL) async throws(UploadError) {
    do throws(UploadError) {
      try await compare(body, with: url)
    } catch {
      guard error.isDifference else { throw error }
      throw UploadError(.resync, .file, error.message, cause: error.cause)
    }
  }
}
