import BlobHTTP
import Blobs

/// What has the name that a file is to have.
enum NameInUse: Sendable {
  /// The very bytes that are to be sent; with the fields of the answer that told so.
  case sameBytes(HTTPHeaders)
  /// Nothing: it can be written to.
  case nothing
  /// A part of what is to be sent, from its first byte on, and nothing else: nothing is lost by replacing it.
  case beginning
  /// The server lets nobody look, by HEAD or by GET; its answer.
  case hidden(UploadError)
}

extension UploadContext {
  /// Looks at the name that `body` is to have (HEAD), and compares what is there with it (GET). Some servers take no HEAD, or
  /// answer it in a way that says nothing: these are asked by GET. Throws with status 409 if there are other bytes, and where
  /// the server lets us look but does not say what is there.
  ///
  /// - `length`: that of the body, where it is known by other means.
  /// - `mayBeOurs`: a PUT of `body` to the name was begun whose end is not known, and a server may publish a part of a body.
  ///   What is there is `.beginning` then if it has the first bytes of the body; else another client has stored it meanwhile.
  func nameInUse(
    _ url: HTTPURL, by body: BlobSlice, length: Int64?, mayBeOurs: Bool = false
  ) async throws(UploadError) -> NameInUse {
    let head = HTTPRequest("HEAD", url)
    let response = try await send(head)
    if [404, 410].contains(response.status) { return .nothing }
    let refusal = UploadError(head, response)
    if case .retry = refusal.recovery { throw refusal }
    // What the server refuses whatever the name is no word about the name.
    if refusal.side == .destination, response.status >= 400, !response.letsNobodyLook { throw refusal }
    let since = mayBeOurs ? ", which came there while this one was sent" : ""
    if response.status == 200, let size = response.headers.bytes("Content-Length"),
      let length = body.length ?? length, size != length, !(mayBeOurs && size < length)
    {
      throw UploadError(
        .giveUp, .file, "\(url): another file of \(size) bytes has that name\(since), and this one has \(length)",
        status: 409)
    }
    let read: ReadBack
    do {
      read = try await readBack(.bytes(of: body), from: url, mayBeShort: mayBeOurs)
    } catch {
      // A connection that broke says nothing about the bytes.
      guard error.isDifference else { throw error }
      throw UploadError(.giveUp, .file, "\(url): another file has that name\(since) (\(error.message))", status: 409)
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

extension HTTPResponse {
  /// The server wants other credentials, or does not take the method there.
  fileprivate var letsNobodyLook: Bool { [401, 403, 405, 407, 501].contains(status) }
}

extension UploadError {
  /// What was read back differs from what was sent.
  var isDifference: Bool { recovery == .giveUp && side == .file && status == nil }
}
