import BlobCrypto
import BlobHTTP
import Blobs

/// `QUERY` of a folder: the versions of files in and below it, many in one request, and with `Want-Repr-Digest` their digests.
///
/// The body has a name per line, percent-encoded and relative to the folder. After a blank it may have the ETag that the
/// client knows: a file that still has it is not read. A name with a slash at its end is that of a folder; `./` is the
/// folder itself. The response has a line for each line of the request, in the same order:
/// `file LENGTH ETAG DIGEST`, with the digest as in `Repr-Digest`, or `-` if the client knows this version, wants none, or
/// the file was written meanwhile; `folder COUNT`, with the number of files in it whose names do not begin with a
/// dot; `none`; or `error STATUS`. A response with fewer lines took long, and the client asks for the rest.
/// draft-ietf-httpbis-safe-method-w-body.
enum QueryRoutes {
  /// The media type of the response, by which a client knows that it was understood.
  static let versions = "application/vnd.fullbore.versions"
  /// The most bytes of a request's body.
  fileprivate static let mostBytes = 1 << 20

  static func plan(_ call: RoutedRequest, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> Plan {
    if call.options.reading == .nothing {
      throw ServerError(403, "this server only receives: nothing can be read here")
    }
    guard isFolder || path.isRoot else { throw ServerError(404, "\(path) is asked as a folder: end it with a slash") }
    guard call.headers["Content-Type"]?.isSameField(QueryOffer.names) == true else {
      throw ServerError(415, "QUERY takes a list of names (\(QueryOffer.names))")
    }
    if let length = call.request.contentLength, length > mostBytes { throw tooLong }
    guard let permit = call.service.queries.bytes.take(Int(call.request.contentLength ?? Int64(mostBytes))) else {
      var error = ServerError(503, "too many clients ask for versions of files; try again in a moment")
      error.headers["Retry-After"] = "5"
      throw error
    }
    return .receive(NamesReceiver(call, path, permit))
  }

  fileprivate static var tooLong: ServerError {
    ServerError(413, "a list of names may have \(mostBytes) bytes at most")
  }
}

/// Answers one list of names, on a thread that may block.
private struct NamesAnswer {
  private let call: RoutedRequest
  private let folder: ServedPath
  /// nil: the client wants no digests.
  private let wanted: Digest.Algorithm?
  /// A client that wants every file to be read, from the disk and not from memory, wants no digest of the cache. RFC 9111
  /// §5.2.1.4.
  private let isAnew: Bool
  /// The time after which the response ends, so that a client does not take the server for dead.
  private static let longest = Duration.seconds(5)
  /// Bytes. A longer file is read only if its name is the first one, so that the answers for others do not wait for it.
  private static let longestBeside: Int64 = 256 << 20

  init(_ call: RoutedRequest, _ folder: ServedPath) {
    (self.call, self.folder) = (call, folder)
    wanted =
      call.service.store.abilities.digests == nil
      ? nil : DigestField.wanted(call.headers["Want-Repr-Digest"], KnownDigests.algorithms)
    isAnew = call.headers.list("Cache-Control").contains { $0.isSameField("no-cache") }
  }

  func text(for body: [UInt8]) throws(ServerError) -> [UInt8] {
    let end = ContinuousClock.now + Self.longest
    var text: [UInt8] = []
    for line in body.split(separator: UInt8(ascii: "\n")) {
      if call.request.clientHasGone { throw ServerError(503, "the client has not waited for the versions of files") }
      do throws(ServerError) {
        guard let answer = try answer(line, isFirst: text.isEmpty) else { break }
        text += answer.utf8
      } catch {
        // A file below a file, or a name that no file can have, is not there.
        text += ([400, 404, 409, 414].contains(error.status) ? "none" : "error \(error.status)").utf8
      }
      text.append(UInt8(ascii: "\n"))
      if ContinuousClock.now > end { break }
    }
    return text
  }

  /// nil: the answer takes long, and is left to the next request.
  private func answer(_ line: ArraySlice<UInt8>, isFirst: Bool) throws(ServerError) -> String? {
    let words = line.split(separator: UInt8(ascii: " "), maxSplits: 1)
    guard let name = words.first.flatMap({ PercentCoding.decode($0) }) else {
      throw ServerError(400, "a name is not percent-encoded")
    }
    let store = call.service.store
    if name.last == UInt8(ascii: "/") {
      let path = name == Array("./".utf8) ? folder : try folder.appending(name.dropLast())
      return "folder \(try store.required(\.listing, "list folders").count(path))"
    }
    let path = try folder.appending(name)
    guard let item = try store.item(at: path), !item.isFolder else { return "none" }
    let isKnown = words.count > 1 && words[1].elementsEqual(item.etag.utf8)
    guard let wanted, !isKnown else { return "file \(item.length) \(item.etag) -" }
    let file = try store.open(path)
    var digest = isAnew ? nil : call.service.digestReader.known.text(wanted, of: file.item)
    if digest == nil {
      if !isFirst, file.item.length > Self.longestBeside { return nil }
      digest = try read(file, path, wanted)
    }
    return "file \(file.item.length) \(file.item.etag) \(digest ?? "-")"
  }

  /// nil: the file was written while it was read, or the client has gone.
  private func read(
    _ file: OpenItem, _ path: ServedPath, _ algorithm: Digest.Algorithm
  ) throws(ServerError) -> String? {
    let store = call.service.store
    guard
      let value = try store.required(\.digests, "compute digests").digest(
        of: file, algorithm, fromDisk: isAnew, while: { !call.request.clientHasGone }),
      try store.item(at: path) == file.item
    else { return nil }
    _ = call.service.digestReader.known.remember([algorithm: value], of: file.item)
    return DigestField.text([algorithm: value], [algorithm])
  }
}

/// Receives the list of names, which is in memory until the response was sent.
private final class NamesReceiver: BodyReceiver, @unchecked Sendable {
  private let call: RoutedRequest
  private let folder: ServedPath
  private let permit: Allowance.Permit
  /// Used on the connection's event thread, one call at a time.
  private var body: [UInt8] = []

  init(_ call: RoutedRequest, _ folder: ServedPath, _ permit: Allowance.Permit) {
    (self.call, self.folder, self.permit) = (call, folder, permit)
  }

  var takesPipes: Bool { false }

  func take(_ piece: BodyPiece) throws(ServerError) {
    guard case .bytes(let bytes) = piece else { preconditionFailure("bytes in a pipe cannot be looked at") }
    if body.count + bytes.count > QueryRoutes.mostBytes { throw QueryRoutes.tooLong }
    body += bytes
  }

  func end(_ trailers: HTTPHeaders) -> Plan {
    call.service.queries.threads.plan { [call, folder, permit, body] () throws(ServerError) in
      var reply = Reply(
        200,
        ["Content-Type": QueryRoutes.versions, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"],
        body: .bytes(try NamesAnswer(call, folder).text(for: body)))
      reply.permits = [permit]
      return .reply(reply)
    }
  }

  func cut() {}
}
