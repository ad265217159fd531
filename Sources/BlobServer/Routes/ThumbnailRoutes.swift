import BlobHTTP
import Blobs
import Platform

/// `GET` and `HEAD` of the preview in a picture: `/a.jpg?thumbnail`. The server reads the start of the file and decodes
/// nothing: `ServerOptions.thumbnail` finds the preview, and the client decodes it.
enum ThumbnailRoutes {
  /// The most bytes of a preview.
  private static let mostBytes = 64 << 10

  /// nil: the request does not ask for a thumbnail.
  static func plan(_ call: RoutedRequest, _ path: ServedPath, _ file: OpenItem) throws(ServerError) -> Plan? {
    guard call.target.asksForThumbnail, let find = call.options.thumbnail else { return nil }
    if call.options.reading != .files {
      throw ServerError(403, "files cannot be read here, and so neither a thumbnail")
    }
    let etag = "\"t\(file.item.etag.dropFirst())"
    try Preconditions.checkMatch(call.headers, etag)
    let headers: HTTPHeaders = [
      "ETag": etag, "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff",
    ]
    if EntityTags("If-None-Match", of: call.headers)?.include(etag, weakly: true) == true {
      return .reply(Reply(304, headers))
    }
    return call.service.folders.lookUp {
      guard MediaType(path.name).mayHavePreview, let start = start(of: file), let jpeg = find(start),
        jpeg.count <= mostBytes
      else { return .refuse(ServerError(404, "\(path) has no preview")) }
      var headers = headers
      headers["Content-Type"] = "image/jpeg"
      headers["Content-Security-Policy"] = "sandbox"
      return .reply(Reply(200, headers, body: .bytes(jpeg)))
    }
  }

  /// nil if the file cannot be read.
  private static func start(of file: OpenItem) -> [UInt8]? {
    let length = min(file.item.length, Int64(ServerOptions.mostReadForThumbnail))
    switch file.content {
    case .file(let descriptor): return bytes(in: descriptor, Int(length))
    case .remote(let content): return length == 0 ? [] : content.start(0..<length).all()
    }
  }

  /// The first bytes of a file, `most` of them.
  private static func bytes(in file: Descriptor, _ most: Int) -> [UInt8]? {
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: most) { room, filled in
      while filled < most {
        count = pread(file.number, room.baseAddress! + filled, most - filled, off_t(filled))
        if count < 0, errno == EINTR { continue }
        if count <= 0 { return }
        filled += count
      }
    }
    return count < 0 ? nil : bytes
  }
}
