import BlobHTTP
import Blobs

/// Errors that all protocols make from unsuccessful responses.
extension UploadError {
  /// The error for an unsuccessful response. Its recovery and side follow from the meaning of the status in HTTP. Its
  /// message contains the method, the URL without its query, the status, and the server's explanation.
  ///
  /// `conflict` is the recovery for 409 and 412: most protocols give these statuses their own meaning.
  public init(_ request: HTTPRequest, _ response: HTTPResponse, conflict: Recovery = .giveUp) {
    let (recovery, side): (Recovery, Side) =
      switch response.status {
      case _ where response.refusesCredentials: (.giveUp, .destination)
      case 407: (.giveUp, .destination)
      case 408, 425, 429, 500, 502, 503, 504: (.retry(after: response.headers.retryAfter), .file)
      case 409, 412: (conflict, .file)
      case 423, 460: (.resync, .file)
      case _ where response.tellsOtherDigest: (.resync, .file)
      // A server that says when there will be room is waited for, like one that is unavailable.
      case 507: (response.headers.retryAfter.map { .retry(after: $0) } ?? .giveUp, .destination)
      // 421: the server does not answer to the host's name, whatever the file. RFC 9110 §15.5.20.
      case 300..<400, 405, 421, 501: (.giveUp, .destination)
      default: (.giveUp, .file)
      }
    self.init(
      recovery, side, "\(request.method) \(request.url): \(response.summary)",
      status: response.refusesCredentials ? 401 : response.status)
  }

  /// The server wants other credentials, whatever the file.
  package var asksForCredentials: Bool { status == 401 && side == .destination }

  /// The error for a response to a request for an upload's own URL: 404, 410 and 403 mean that the upload no longer
  /// exists.
  init(session request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response, conflict: .resync)
    if response.refusesCredentials { return }
    if [403, 404, 410].contains(response.status) { recovery = .restart }
  }

  /// The error for 409 in response to an append: the server expects another offset, which says nothing about the file's
  /// name. It has no status, because the user would otherwise get the advice for a name that is taken.
  init(offsetOf request: HTTPRequest, from offset: Int64, held: Int64? = nil, _ response: HTTPResponse) {
    let detail = held.map { ": it says that it holds \($0) bytes" } ?? response.reason.map { ": \($0)" } ?? ""
    self.init(.resync, .file, "\(request.method) \(request.url): answered 409 to bytes from \(offset) on\(detail)")
  }

  /// The error for a response to OPTIONS that refuses this client, or asks it to come back later. nil: the response
  /// tells the server's protocols. A server that does not know the method responds 400, 404, 405 or 501. One that fails says
  /// nothing about itself, and is asked again.
  init?(asking request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response)
    if response.refusesAll || response.wantsTLS { return }
    guard case .retry = recovery else { return nil }
  }

  /// The error for a refused creation. 404 means that the endpoint itself does not exist, so it concerns all files.
  init(creating request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response)
    if response.status == 404 { side = .destination }
  }
}

extension HTTPResponse {
  /// Whether a response to PUT says that the server has stored the body. Another 2xx status promises less: 202 need not
  /// be acted on, 206 concerns a part, and 207 several resources, some of which may have failed. RFC 9110 §9.3.4, RFC
  /// 4918 §13.
  var saysStored: Bool { [200, 201, 204].contains(status) }

  /// nginx and Apache say so to a client that does not use TLS at a port where they expect it.
  var wantsTLS: Bool {
    guard status == 400 else { return false }
    let text = String(decoding: body.prefix(2000), as: UTF8.self)
    return text.contains("plain HTTP request was sent to HTTPS port")
      || text.contains("speaking plain HTTP to an SSL-enabled server port")
  }

  /// Every further request would get the same response: credentials are missing, or the URL names another server.
  var refusesAll: Bool { refusesCredentials || [407, 421].contains(status) }

  /// The credentials are missing or are no longer valid. A server may also say so by 403 with the error that RFC 6750 §3.1
  /// has for a token that has expired; any other 403 concerns the file.
  package var refusesCredentials: Bool {
    if status == 401 { return true }
    guard status == 403, let field = headers["WWW-Authenticate"]?.lowercased() else { return false }
    return field.contains("error=\"invalid_token\"") || field.contains("error=invalid_token")
  }

  /// The status, its meaning, and the first line of the server's explanation.
  var summary: String {
    var text = String(status)
    if takesNoUploads {
      text += " (\(Self.noUploads))"
    } else if let meaning = Self.meanings[tellsOtherDigest ? 460 : status] {
      text += " (\(meaning))"
    } else if isSuccess, !saysStored {
      text += " (this does not say that the file is stored)"
    }
    if 300..<400 ~= status, let location = headers["Location"] {
      text += " to \(location.prefix { $0 != "?" }.split(separator: "@").last ?? "")"
    }
    if let reason { text += ": \(reason)" }
    return text
  }

  /// The text in `summary` for a server that lists methods for the URL, none of which uploads.
  package static let noUploads = "it takes no uploads there"

  /// RFC 9110 §15.5.6: the response lists the methods that the URL supports.
  private var takesNoUploads: Bool {
    let methods = headers.list("Allow")
    return status == 405 && !methods.isEmpty && !methods.contains { ["PUT", "POST", "PATCH", "MKCOL"].contains($0) }
  }

  /// The server's explanation, at most 200 characters, without control characters for a terminal.
  package var reason: String? {
    if repeatsSecret { return nil }
    let type = headers["Content-Type"]?.lowercased() ?? ""
    return type.hasPrefix("text/plain") ? firstLine : type.contains("xml") ? errorMessage : nil
  }

  /// The message of an XML error: SabreDAV's `<s:message>`, which Nextcloud and ownCloud send, S3's `<Message>`, or
  /// else the name of the failed precondition. RFC 4918 §16.
  private var errorMessage: String? {
    guard body.count <= RequestSecrets.mostShown, let error = XMLTree(body), error.name.lowercased() == "error" else {
      return nil
    }
    let exception = error.text("exception")?.split(separator: "\\").last.map(String.init)
    let said = error.text("message") ?? error.text("Message") ?? exception ?? error.children.first?.name ?? ""
    let text = String(String(said.unicodeScalars.prefix(1000)).withoutInvisible.prefix(200)).trimmed
    return text.isEmpty ? nil : text
  }

  private var firstLine: String? {
    let line = String(decoding: body.prefix(1000), as: UTF8.self).prefix { !$0.isNewline }
    let shown = String(line.prefix(200)).trimmed
    guard !shown.isEmpty, shown.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
      return nil
    }
    let text = shown.withoutInvisible.trimmed
    return text.isEmpty ? nil : text
  }

  private static let meanings: [Int: String] = [
    400: "it does not understand the request", 401: "it asks for credentials", 403: "it refuses",
    404: "there is no such place", 405: "it does not take this method there", 407: "the proxy asks for credentials",
    408: "it waited too long for us", 409: "another file has that name, or is on its way to it",
    410: "it is gone", 412: "a condition did not hold", 413: "too large for it", 415: "it does not take this type",
    423: "locked", 425: "too early", 429: "too many requests",
    460: "the bytes changed on the way", 500: "it failed", 501: "it cannot do this",
    502: "the server behind it failed", 503: "it is not ready", 504: "the server behind it was too slow",
    507: "it has no room left",
  ]
}

extension String {
  /// Replaces each invisible scalar, and each that changes how others are shown, with a blank: control and format
  /// characters (U+200B, U+202E), and line ends.
  fileprivate var withoutInvisible: String {
    String(
      unicodeScalars.map { scalar in
        [.control, .format, .lineSeparator, .paragraphSeparator].contains(scalar.properties.generalCategory)
          ? " " : Character(scalar)
      })
  }
}

extension HTTPResponse {
  /// A Fullbore server already had the bytes before they were sent.
  var saysUnchanged: Bool { headers[UploadOutcomeField.name] == UploadOutcomeField.unchanged }
  /// A Fullbore server has all bytes, and waits for the other members of the group.
  var saysWaiting: Bool { headers[UploadOutcomeField.name] == UploadOutcomeField.waiting }
}

extension UploadResult {
  /// Notes in the result whether the final response says that the server already had the bytes, and what has become of the
  /// upload's group; nil: the upload belongs to none.
  func told(by response: HTTPResponse, of group: UploadGroup?) -> UploadResult {
    var result = self
    result.wasThere = response.saysUnchanged
    guard let group else { return result }
    if response.saysWaiting {
      result.group = .waiting
    } else if response.headers[UploadGroup.field].flatMap({ UploadGroup($0) })?.id == group.id {
      result.group = .published
    }
    return result
  }
}

extension HTTPHeaders {
  /// The delay that the server asks for, in seconds or as a date, which counts by the server's own clock if it tells it.
  /// RFC 9110 §10.2.3. nil: it asks for none, or the field is invalid, and the policy decides.
  var retryAfter: Duration? {
    guard let field = self["Retry-After"] else { return nil }
    if let seconds = Int64(digits: field) { return .seconds(seconds) }
    // More seconds than fit.
    if !field.isEmpty, field.utf8.allSatisfy({ (48...57).contains($0) }) { return .seconds(Int64.max) }
    guard let date = HTTPDate.seconds(field) else { return nil }
    let now = self["Date"].flatMap { HTTPDate.seconds($0) } ?? currentSeconds()
    return .seconds(max(0, date.subtractingClamped(now)))
  }
}

extension HTTPRequest {
  /// The URL of the upload that the server has created for this request; it must have the same origin.
  func uploadURL(_ head: HTTPHead) throws(UploadError) -> HTTPURL {
    guard let location = head.headers["Location"], let upload = url.resolve(location) else {
      throw UploadError(
        .giveUp, .destination,
        "\(method) \(url): answered \(head.status) without a usable Location. One that repeats a credential would be kept, "
          + "and is not used",
        status: head.status)
    }
    if upload.origin == url.origin { return upload }
    throw UploadError(
      .giveUp, .destination,
      "\(method) \(url): refused to follow its Location to \(upload.origin), which is not \(url.origin). "
        + "A server behind a proxy must be told the address that its clients see",
      status: head.status)
  }
}

extension UploadSession {
  /// The URL that the protocol stores in `state` under `url`. Throws with `.restart` if it is missing, for example
  /// because the journal is damaged.
  public func uploadURL() throws(UploadError) -> HTTPURL {
    if let url = state["url"].flatMap({ HTTPURL($0) }) { return url }
    throw UploadError(.restart, .journal, "the upload's URL is missing from the journal")
  }
}

extension UploadContext {
  /// Whether HEAD for the target's URL finds a file of the right length, or of any length if the target has none.
  /// false: 404 or 410; any other refusal is thrown.
  public func isThere(_ target: UploadTarget) async throws(UploadError) -> Bool {
    let request = HTTPRequest("HEAD", target.url)
    let response = try await send(request)
    if response.isSuccess { return target.length == nil || response.headers.bytes("Content-Length") == target.length }
    if [404, 410].contains(response.status) { return false }
    throw UploadError(request, response)
  }

  /// Sends `request` with the credentials and the signature of the destination, only to the destination's origin, and
  /// follows redirects within it; `body` is opened again for each. 307 and 308 are followed, 301 and 302 only for
  /// methods that change nothing.
  ///
  /// Returns the response, whatever its status: `UploadError(request, response)` makes an error of a refusal. The bytes
  /// of `body` count as the upload's and are reported to `events`; send a body that is not part of the file with
  /// `NoUploadEvents`. Throws if no response arrived, with `.resync` if the server may have processed the request.
  public func send(_ request: HTTPRequest, body: BlobSlice? = nil) async throws(UploadError) -> HTTPResponse {
    var request = request
    return try await send(following: &request, body: body)
  }
}
