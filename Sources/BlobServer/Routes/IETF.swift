import BlobHTTP
import Blobs

/// Words of resumable uploads for HTTP, draft-ietf-httpbis-resumable-upload, in every version that clients send.
struct IETF: Sendable {
  /// `Upload-Draft-Interop-Version`; nil: the final form, which has none.
  let version: Int?
  static let contentType = "application/partial-upload"

  /// A version that is not ours says nothing to us, and its request is a plain one.
  init?(_ headers: HTTPHeaders) {
    guard let field = headers["Upload-Draft-Interop-Version"] else {
      version = nil
      return
    }
    guard let version = StructuredField.integer(field), (3...8).contains(version) else { return nil }
    self.version = Int(version)
  }

  /// Whether the request brings the end of the upload; nil when it does not say, so that it is no resumable one.
  func isLast(_ headers: HTTPHeaders) -> Bool? {
    if version == 3 { return StructuredField.boolean(headers["Upload-Incomplete"]).map { !$0 } }
    return StructuredField.boolean(headers["Upload-Complete"])
  }

  /// Bytes come with this media type, from version 6 on.
  func checkContentType(_ headers: HTTPHeaders) throws(ServerError) {
    if let version, version < 6 { return }
    let type = headers["Content-Type"] ?? ""
    if !type.isSameField(Self.contentType) {
      throw ServerError(415, "Content-Type must be \(Self.contentType), not '\(type.prefix(100))'")
    }
  }

  // MARK: Answers

  /// Says whether the upload is whole, and where it is.
  func answer(_ status: Int, isWhole: Bool, offset: Int64, _ headers: HTTPHeaders = [:]) -> Reply {
    var reply = Reply(status, headers)
    mark(&reply, isWhole: isWhole)
    reply.headers["Upload-Offset"] = String(offset)
    return reply
  }

  func mark(_ reply: inout Reply, isWhole: Bool) {
    if version == 3 {
      reply.headers["Upload-Incomplete"] = isWhole ? "?0" : "?1"
    } else {
      reply.headers["Upload-Complete"] = isWhole ? "?1" : "?0"
    }
  }

  /// `Upload-Limit`, which versions before 6 do not know. `expires`: nanoseconds since 1970.
  func limit(_ maxSize: Int64?, expires: Int64) -> String? {
    if let version, version < 6 { return nil }
    return Self.limit(maxSize, seconds: max(0, (expires - wallClock()) / 1_000_000_000), version: version ?? 8)
  }

  static func limit(_ maxSize: Int64?, seconds: Int64, version: Int = 8) -> String {
    let age = "\(version == 6 ? "expires" : "max-age")=\(min(seconds, 999_999_999_999_999))"
    return maxSize.map { "max-size=\(min($0, 999_999_999_999_999)), \(age)" } ?? age
  }

  /// The interim answer that tells an upload's URL before its bytes have come; empty for who would not understand it.
  func interim(_ location: String, limit: String?) -> [UInt8] {
    guard let version else { return [] }
    var head = "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: \(version)\r\n"
    head += "Location: \(location)\r\n"
    if let limit { head += "Upload-Limit: \(limit)\r\n" }
    return Array("\(head)\r\n".utf8)
  }

  /// The interim answer that tells how far the upload is while its bytes come; empty before version 5, which brought it.
  func progress(_ offset: Int64) -> [UInt8] {
    guard let version, version >= 5 else { return [] }
    return Array(
      """
      HTTP/1.1 104 Upload Resumption Supported\r
      Upload-Draft-Interop-Version: \(version)\r
      Upload-Offset: \(offset)\r
      \r

      """.utf8)
  }

  /// A refusal of a kind that the draft has a name for. RFC 9457.
  func problem(
    _ status: Int, _ type: String, _ title: String, _ numbers: KeyValuePairs<String, Int64> = [:], offset: Int64? = nil
  ) -> Reply {
    let members = numbers.map { #","\#($0)":\#($1)"# }.joined()
    var reply = Reply(
      status, ["Content-Type": "application/problem+json"],
      body: .bytes(Reply.problem(type, title, members: members)))
    mark(&reply, isWhole: type == "completed-upload")
    reply.headers["Upload-Offset"] = offset.map { String($0) }
    return reply
  }
}
