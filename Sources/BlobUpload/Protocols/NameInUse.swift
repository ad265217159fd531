import BlobHTTP
import Blobs

/// What a server has under the name that a file is to get.
enum NameInUse: Sendable {
  /// The same bytes as those to be sent; with the fields of the response that showed it.
  case sameBytes(HTTPHeaders)
  /// No file: the name is free.
  case nothing
  /// A part of the bytes to be sent, from the first byte on, and nothing else: replacing it loses nothing.
  case beginning
  /// The server refuses both HEAD and GET; its response.
  case hidden(UploadError)
}

extension UploadContext {
  /// Queries the name that `body` is to get (HEAD), and compares the file there with `body` (GET). Servers that do not
  /// support HEAD, or whose response to it is useless, are queried by GET only. Throws with status 409 if the name has
  /// other bytes. Also throws if the name is readable, but its state is not clear from the responses.
  ///
  /// - `length`: length of the body, if known from elsewhere.
  /// - `mayBeOurs`: an earlier PUT of `body` to the name had an unknown result, and a server may publish a part of a
  ///   body. A file with the first bytes of the body is then `.beginning`; other bytes were stored by another client
  ///   meanwhile.
  func nameInUse(
    _ url: HTTPURL, by body: BlobSlice, length: Int64?, mayBeOurs: Bool = false
  ) async throws(UploadError) -> NameInUse {
    let head = HTTPRequest("HEAD", url)
    let response = try await send(head)
    if [404, 410].contains(response.status) {
      putAnswers.noteMissing(inFolderOf: url)
      return .nothing
    }
    let refusal = UploadError(head, response)
    if case .retry = refusal.recovery { throw refusal }
    // A refusal that does not depend on the name says nothing about the name.
    if refusal.side == .destination, response.status >= 400, !response.letsNobodyLook { throw refusal }
    let since = mayBeOurs ? ", which came there while this one was sent" : ""
    if response.status == 200, let size = response.headers.bytes("Content-Length"),
      // Some servers report a length of 0 for every HEAD.
      let length = body.length ?? length, size != length, size > 0, !(mayBeOurs && size < length)
    {
      throw try await taken(
        url, "\(url): another file of \(size) bytes has that name\(since), and this one has \(length)")
    }
    let read: ReadBack
    do {
      read = try await readBack(.bytes(of: body), from: url, mayBeShort: mayBeOurs)
    } catch {
      // An interrupted connection says nothing about the bytes.
      guard error.isDifference else { throw error }
      throw try await taken(url, "\(url): another file has that name\(since) (\(error.message))")
    }
    if read.response.status == 200 {
      return read.isShort ? .beginning : .sameBytes((response.status == 200 ? response : read.response).headers)
    }
    if response.status == 200 { throw UploadError(reading: read.request, read.response) }
    if [404, 410].contains(read.response.status) { return .nothing }
    var error = UploadError(read.request, read.response)
    if case .retry = error.recovery { throw error }
    if response.letsNobodyLook, read.response.letsNobodyLook { return .hidden(refusal) }
    error.message =
      "\(url): whether a file has that name is not known, since the server answers \(response.status) to HEAD and "
      + "\(read.response.summary) to GET. Nothing was sent; --overwrite sends without asking"
    throw error
  }
}

extension UploadContext {
  /// The error for a name that has other bytes, with `message`; or for a place that answers every name with a page: there,
  /// nothing has the name, and no other file can be sent. The server is asked once per folder for a name that nothing has.
  private func taken(_ url: HTTPURL, _ message: String) async throws(UploadError) -> UploadError {
    // The other file may be one of this push, and the advice for another's file, --overwrite, would lose it.
    try checkRedirects(to: url)
    let nothing = url.folder.appending(pathBytes: "fullbore-asks-\(UInt64.random(in: 0...UInt64.max))".utf8)
    let tellsMissing = try await putAnswers.tellsMissing(inFolderOf: url) { () async throws(UploadError) in
      do throws(UploadError) {
        if case .found = try await remoteLength(of: nothing, expecting: nil) { return false }
      } catch {
        // A refusal distinguishes that name from the one that is taken.
        if error.side == .cancelled { throw error }
      }
      return true
    }
    if tellsMissing { return UploadError(.giveUp, .file, message, status: 409) }
    return UploadError(
      .giveUp, .destination,
      "\(url): whether a file has that name is not known, since \(nothing), which nothing can be called, has one too: the "
        + "server seems to answer 200 to everything. Nothing was sent. Is the path right?",
      status: 200)
  }
}

extension HTTPResponse {
  /// The server requires other credentials, or does not support the method for the URL.
  fileprivate var letsNobodyLook: Bool { [401, 403, 405, 407, 501].contains(status) }
}

extension UploadError {
  /// The bytes read back differ from those that were sent.
  var isDifference: Bool { recovery == .giveUp && side == .file && status == nil }
}
