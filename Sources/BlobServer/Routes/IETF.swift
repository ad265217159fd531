import BlobHTTP
import Blobs

/// The protocol elements of resumable uploads for HTTP, draft-ietf-httpbis-resumable-upload, in every version that
/// clients use.
struct IETF: Sendable {
  /// The value of `Upload-Draft-Interop-Version`; nil: the final version, which does not use this field.
  let version: Int?
  static let contentType = "application/partial-upload"

  /// nil if the version is not supported: then the request is treated as an ordinary one.
  init?(_ headers: HTTPHeaders) {
    guard headers["Upload-Draft-Interop-Version"] != nil else {
      // Only version 3 has this field. Apple's documentation shows it without the version.
      version = headers["Upload-Incomplete"] == nil ? nil : 3
      return
    }
    let field = headers.item("Upload-Draft-Interop-Version")
    guard let version = StructuredField.integer(field), (3...8).contains(version) else { return nil }
    self.version = Int(version)
  }

  /// Whether the request completes the upload; nil if it does not say so, and thus is not a resumable upload.
  func isLast(_ headers: HTTPHeaders) -> Bool? {
    if version == 3 { return StructuredField.boolean(headers.item("Upload-Incomplete")).map { !$0 } }
    return StructuredField.boolean(headers.item("Upload-Complete"))
  }

  /// Whether the request contains a state of the upload, which a request that queries the state must not.
  func tellsState(_ headers: HTTPHeaders) -> Bool {
    headers["Upload-Offset"] != nil || headers[version == 3 ? "Upload-Incomplete" : "Upload-Complete"] != nil
  }

  /// Requires the media type for appended bytes, which version 6 introduced.
  func checkContentType(_ headers: HTTPHeaders) throws(ServerError) {
    if let version, version < 6 { return }
    let type = headers["Content-Type"] ?? ""
    if !type.isSameField(Self.contentType) {
      throw ServerError(415, "Content-Type must be \(Self.contentType), not '\(type.prefix(100))'")
    }
  }

  // MARK: Responses

  /// A response that states whether the upload is complete, and its offset.
  func answer(_ status: Int, isWhole: Bool, offset: Int64, _ headers: HTTPHeaders = [:]) -> Reply {
    var reply = Reply(status, headers)
    mark(&reply, isWhole: isWhole)
    reply.headers["Upload-Offset"] = String(offset)
    return reply
  }

  /// The response for a request that failed with `error`, for an incomplete upload. `offset`: the byte at which the
  /// client may continue; nil: the response has no offset.
  func refusal(_ error: ServerError, offset: Int64?) -> Reply {
    var reply = Reply(error)
    reply.headers["Upload-Offset"] = offset.map { String($0) }
    mark(&reply, isWhole: false)
    return reply
  }

  /// The response for an upload that has ended with `error`, unless it can still be published.
  func failed(_ error: ServerError) -> Reply {
    var reply = Reply(error)
    // After a file system error the client may try again; any other error is final.
    if error.endsUpload { mark(&reply, isWhole: true) }
    return reply
  }

  func mark(_ reply: inout Reply, isWhole: Bool) {
    if version == 3 {
      reply.headers["Upload-Incomplete"] = isWhole ? "?0" : "?1"
    } else {
      reply.headers["Upload-Complete"] = isWhole ? "?1" : "?0"
    }
  }

  /// The value of `Upload-Limit`; nil for versions before 6, which do not have it. `expires`: nanoseconds since 1970.
  func limit(_ maxSize: Int64?, expires: Int64) -> String? {
    if let version, version < 6 { return nil }
    let left = max(0, expires.addingClamped(-wallClock()) / 1_000_000_000)
    return Self.limit(maxSize, seconds: left, version: version ?? 8)
  }

  static func limit(_ maxSize: Int64?, seconds: Int64, version: Int = 8) -> String {
    let age = "\(version == 6 ? "expires" : "max-age")=\(min(seconds, largestNumber))"
    return maxSize.map { "max-size=\(min($0, largestNumber)), \(age)" } ?? age
  }

  /// `Upload-Limit` in the response to OPTIONS. Versions before 6 do not have this field, but Apple's photo uploader asks
  /// for it, and its documentation shows the size as a bare number.
  static func offer(_ maxSize: Int64?, seconds: Int64, version: Int) -> String {
    version < 6 ? String(min(maxSize ?? .max, largestNumber)) : limit(maxSize, seconds: seconds, version: version)
  }

  /// The largest integer in a structured field. RFC 9651 §3.3.1.
  private static let largestNumber: Int64 = 999_999_999_999_999

  /// Adds the size limit to an error with status 413.
  func limited(_ error: ServerError, _ options: ServerOptions) -> ServerError {
    if error.status != 413 || version.map({ $0 < 6 }) == true { return error }
    var error = error
    error.headers["Upload-Limit"] = Self.limit(
      options.maxSize, seconds: options.expire.components.seconds, version: version ?? 8)
    return error
  }

  /// The interim response with the upload's URL, sent before its bytes arrive; empty if the client would not understand
  /// it.
  func interim(_ location: String, limit: String?) -> [UInt8] {
    guard let version else { return [] }
    var head = "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: \(version)\r\n"
    head += "Location: \(location)\r\n"
    if let limit { head += "Upload-Limit: \(limit)\r\n" }
    return Array("\(head)\r\n".utf8)
  }

  /// The interim response with the current offset, sent while bytes arrive; empty before version 5, which introduced
  /// it.
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

  /// An error response with a problem type that the draft defines. RFC 9457.
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

  /// The error for bytes past the upload's length, which end the upload.
  func pastLength(_ message: String) -> ServerError {
    var error = ServerError(409, message, problem: "inconsistent-upload-length")
    error.headers[version == 3 ? "Upload-Incomplete" : "Upload-Complete"] = version == 3 ? "?1" : "?0"
    return error
  }
}

extension HTTPHeaders {
  /// The value of a structured field that is a single item; nil if the field is repeated. RFC 9651 §4.2.
  func item(_ name: String) -> String? {
    let found = fields.filter { $0.name.isSameField(name) }
    return found.count == 1 ? found[0].value : nil
  }
}
