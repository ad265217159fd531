import BlobHTTP
import Blobs

/// `GET` and `HEAD` of published files, as a whole or a range. RFC 9110 §9.3.1, §14.
enum GetRoutes {
  static func plan(_ call: RoutedRequest, _ path: ServedPath, isFolder: Bool) throws(ServerError) -> Plan {
    if call.options.reading == .nothing {
      throw ServerError(403, "this server only receives: nothing can be read here")
    }
    guard let item = try find(call, path) else { throw ServerError(404, "nothing is at \(path)") }
    if item.isFolder {
      if isFolder || path.isRoot {
        if let archive = try ArchiveRoutes.plan(call, path) { return archive }
        return try PageRoutes.plan(call, path)
      }
      let query = call.target.query.isEmpty ? "" : "?" + String(decoding: call.target.query, as: UTF8.self)
      let folder = call.target.reference(to: path.folderURL) + query
      return .reply(Reply(301, ["Location": folder], text: "\(path) is a folder"))
    }
    if isFolder { throw ServerError(404, "\(path) is a file, not a folder") }
    if call.options.reading == .names, call.method == "GET" {
      throw ServerError(403, "this server receives, and lists what it has: the files themselves cannot be read here")
    }
    let file = try call.service.store.open(path)
    if let thumbnail = try ThumbnailRoutes.plan(call, path, file) { return thumbnail }
    let clientHasIt = try Preconditions.clientHasIt(call.headers, file.item)
    let known = call.service.digestReader.known.answer(call.headers["Want-Repr-Digest"], of: file.item)
    // A client that gets no digest in the response compares by other means.
    guard known == nil, call.method == "HEAD", call.service.store.abilities.digests != nil,
      let wanted = DigestField.wanted(call.headers["Want-Repr-Digest"], KnownDigests.ofOneFile)
    else {
      return .reply(reply(call, path, file, known, clientHasIt))
    }
    // A client sends HEAD to decide whether to send or fetch the bytes. Reading the file here is cheaper than either.
    return .later { decided in
      let client = DigestReader.Client(hasGone: { call.request.clientHasGone }) { result in
        switch result {
        case .success(let digest): decided(.reply(reply(call, path, file, digest, clientHasIt)))
        case .failure(let error): decided(.refuse(error))
        }
      }
      call.service.digestReader.ask(wanted, of: file, for: client)
    }
  }

  /// Returns nil for a path below a file, which for reading is not a conflict (409).
  private static func find(_ call: RoutedRequest, _ path: ServedPath) throws(ServerError) -> StoredItem? {
    do throws(ServerError) {
      return try call.service.store.item(at: path)
    } catch {
      if error.status == 409 { return nil }
      throw error
    }
  }

  /// `clientHasIt`: the preconditions show that the client already has this version.
  private static func reply(
    _ call: RoutedRequest, _ path: ServedPath, _ file: OpenItem, _ digest: String?, _ clientHasIt: Bool
  ) -> Reply {
    let item = file.item
    let modified = HTTPDate.text(seconds: item.modifiedSeconds)
    var headers: HTTPHeaders = ["ETag": item.etag, "Accept-Ranges": "bytes"]
    headers["Last-Modified"] = modified
    // A cache on the way asks whether the file has changed: whoever compares a file wants the one that is here. RFC 9111
    // §5.2.2.4.
    headers["Cache-Control"] = "no-cache"
    headers["Repr-Digest"] = digest
    // The body is not sent, but the response states its length. RFC 9110 §8.6.
    if clientHasIt { return Reply(304, headers, body: .file(file, 0..<item.length)) }
    // Uploaded content is not trusted: it must not run as part of this server's origin.
    let type = MediaType(path.name)
    headers["Content-Type"] = type.text
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = "sandbox"
    if !type.isShown || call.target.asksForDownload { headers["Content-Disposition"] = attachment(path.name.bytes) }
    switch range(call, length: item.length, etag: item.etag, modified: modified) {
    case .whole:
      return Reply(200, headers, body: .file(file, 0..<item.length))
    case .part(let range):
      headers["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(item.length)"
      return Reply(206, headers, body: .file(file, range))
    case .unsatisfiable:
      return Reply(416, ["Content-Range": "bytes */\(item.length)"], text: "the range begins past the end")
    }
  }

  /// Ranges apply only to GET; `If-Range` must match exactly this version. RFC 9110 §13.1.5, §14.2.
  static func range(_ call: RoutedRequest, length: Int64, etag: String, modified: String?) -> ByteRange {
    guard call.method == "GET" else { return .whole }
    if let condition = call.headers["If-Range"], condition != etag, condition != modified { return .whole }
    return ByteRange(call.headers["Range"], of: length)
  }
}

/// The media type for a file name, by its extension.
package struct MediaType {
  package let text: String
  /// Whether a browser displays the file; other files are downloaded.
  var isShown: Bool { text.hasPrefix("image/") || text.hasPrefix("video/") }
  /// Whether cameras put a preview into such files.
  var mayHavePreview: Bool { withPreview.contains(text) }

  package init(_ name: BytePath) {
    let parts = name.bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let ending = parts.count > 1 ? String(decoding: parts.last!, as: UTF8.self).lowercased() : ""
    text = types[ending] ?? "application/octet-stream"
  }
}

private let withPreview: Set = [
  "image/jpeg", "image/heic", "image/heif", "image/tiff", "image/x-adobe-dng", "image/x-canon-cr2", "image/x-nikon-nef",
  "image/x-sony-arw",
]

private let types = [
  "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
  "heic": "image/heic", "heif": "image/heif", "avif": "image/avif", "tif": "image/tiff", "tiff": "image/tiff",
  "bmp": "image/bmp", "svg": "image/svg+xml", "dng": "image/x-adobe-dng", "cr2": "image/x-canon-cr2",
  "nef": "image/x-nikon-nef", "arw": "image/x-sony-arw",
  "mp4": "video/mp4", "m4v": "video/mp4", "mov": "video/quicktime", "webm": "video/webm", "mkv": "video/x-matroska",
  "avi": "video/x-msvideo", "mpg": "video/mpeg", "mpeg": "video/mpeg", "mts": "video/mp2t", "3gp": "video/3gpp",
  "mp3": "audio/mpeg", "m4a": "audio/mp4", "wav": "audio/wav", "flac": "audio/flac", "ogg": "audio/ogg",
  "txt": "text/plain; charset=utf-8", "json": "application/json", "xml": "application/xml", "pdf": "application/pdf",
  "zip": "application/zip", "gz": "application/gzip", "tar": "application/x-tar",
]
