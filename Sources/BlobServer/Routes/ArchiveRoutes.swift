import BlobHTTP
import Blobs

/// `GET` and `HEAD` of a folder as an archive of all files below it: `/folder/?archive=zip` or `tar`.
///
/// Both formats have their length in advance, and ranges. The bytes of a tar follow from the list of files, so a range
/// costs nothing. A ZIP has checksums: for a range the files before it must have been read. Those that were in an archive
/// before are known (`ArchiveSums`), so a download that goes on after a cut reads at most the rest of one file again. After
/// a restart of the server, the files before the range are read once, as for a digest that a client asks for.
enum ArchiveRoutes {
  /// nil: the request does not ask for an archive.
  static func plan(_ call: RoutedRequest, _ path: ServedPath) throws(ServerError) -> Plan? {
    guard let name = try call.target.value(of: "archive") else { return nil }
    guard let format = ArchiveFormat(rawValue: String(decoding: name, as: UTF8.self)) else {
      throw ServerError(400, "an archive is 'zip' or 'tar'")
    }
    if call.options.reading != .files { throw ServerError(403, "files cannot be read here, and so neither an archive") }
    let archiving = try call.service.store.required(\.archiving, "make archives")
    guard let place = call.service.archives.count.take() else { throw tooMany }
    return call.service.archives.threads.plan { () throws(ServerError) in
      try plan(call, path, format, archiving, place)
    }
  }

  private static func plan(
    _ call: RoutedRequest, _ path: ServedPath, _ format: ArchiveFormat, _ archiving: any FolderArchiving,
    _ place: Allowance.Permit
  ) throws(ServerError) -> Plan {
    let service = call.service
    let isWanted = { !call.request.clientHasGone }
    if !isWanted() { throw ServerError(503, "the client has gone") }
    let name = ArchiveName.safe(path.isRoot ? Array((call.options.page?.name ?? "files").utf8) : path.name.bytes)
    let tree = try archiving.tree(path, named: name, while: isWanted)
    guard let bytes = service.archives.bytes.take(tree.size) else { throw tooMany }
    let archive = try Archive(tree, format)
    try Preconditions.checkMatch(call.headers, archive.etag)
    var part = Archive.Part(
      archive: archive, range: 0..<archive.length, store: service.store, folder: path, cache: service.archives.sums,
      sums: format.hasSums ? service.archives.sums.known(of: tree) : [UInt32?](repeating: nil, count: archive.count),
      notice: call.options.notice)
    var headers: HTTPHeaders = ["ETag": archive.etag, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"]
    var reply: Reply
    if EntityTags("If-None-Match", of: call.headers)?.include(archive.etag, weakly: true) == true {
      reply = Reply(304, headers, body: .archive(part))
    } else {
      headers["Content-Type"] = format.mediaType
      headers["X-Content-Type-Options"] = "nosniff"
      headers["Content-Security-Policy"] = "sandbox"
      headers["Content-Disposition"] = attachment(Array("\(name).\(format.rawValue)".utf8))
      switch GetRoutes.range(call, length: archive.length, etag: archive.etag, modified: nil) {
      case .whole: reply = Reply(200, headers, body: .archive(part))
      case .part(let range):
        part.range = range
        try readMissingSums(&part, service, isWanted)
        headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(archive.length)"
        reply = Reply(206, headers, body: .archive(part))
      case .unsatisfiable:
        return .reply(
          Reply(416, ["Content-Range": "bytes */\(archive.length)"], text: "the range begins past the end"))
      }
    }
    reply.permits = [place, bytes]
    return .reply(reply)
  }

  /// Reads the files whose checksums are in the range, and whose bytes are not.
  private static func readMissingSums(
    _ part: inout Archive.Part, _ service: Service, _ isWanted: () -> Bool
  ) throws(ServerError) {
    let missing = part.archive.entriesWithSums(in: part.range).filter { [part] in part.sums[$0] == nil }
    if missing.isEmpty { return }
    guard let turn = service.archives.reading.take() else { throw tooMany }
    defer { withExtendedLifetime(turn) {} }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
    defer { room.deallocate() }
    for index in missing {
      var file = try ArchivedFile(part, index)
      while file.rest > 0 {
        if part.store.isInterrupted { throw ServerError(503, "the server is stopping") }
        if !isWanted() { throw ServerError(503, "the client has gone") }
        _ = try file.read(into: room)
      }
      part.sums[index] = file.sum
      if let sum = file.sum { part.cache.remember(sum, of: part.archive.tree.entries[index]) }
    }
  }

  private static var tooMany: ServerError {
    var error = ServerError(503, "too many clients fetch archives; try again in a moment")
    error.headers["Retry-After"] = "5"
    return error
  }
}

/// The value of `Content-Disposition` that saves a file under its name. Old programs take the first one, which is ASCII.
/// RFC 6266 §4.
func attachment(_ name: [UInt8]) -> String {
  let ascii = name.map { 0x20...0x7E ~= $0 && !"\"\\%".utf8.contains($0) ? $0 : UInt8(ascii: "_") }
  return "attachment; filename=\"\(String(decoding: ascii, as: UTF8.self))\"; filename*=UTF-8''\(HTTPURL.encode(name))"
}
