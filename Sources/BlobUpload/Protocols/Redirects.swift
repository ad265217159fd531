import BlobHTTP
import Blobs

extension UploadContext {
  /// Maximum number of consecutive redirects to follow.
  static let mostRedirects = 5

  /// Sends `request` with the credentials of this context, and follows redirects within its own origin; the body is
  /// opened again for each. On return, `request` is the one that the final response belongs to.
  ///
  /// 307 and 308 are followed, 301 and 302 only for methods that change nothing: clients may turn any other method into
  /// a GET. A deletion follows only to its own path, with or without a slash at the end: another path is another file,
  /// or a folder of files. No request is ever sent to another origin. RFC 9110 §15.4. `accepting`: a status that is
  /// returned even if it is a redirect.
  func send(
    following request: inout HTTPRequest, body: BlobSlice? = nil, _ on: Exchange? = nil, accepting: Int? = nil
  ) async throws(UploadError) -> HTTPResponse {
    let first = request.url
    var visited: [String] = []
    var isRenewed = false
    if request.method == "PUT" { try checkRedirects(to: first) }
    while true {
      let version = server.credentials.version
      let hop = SentCounter()
      let response = try await exchange(request, body, counting(hop, on))
      if response.refusesCredentials, !isRenewed, await server.credentials.areRenewed(since: version) {
        isRenewed = true
        guard body.canBeSentAgain(on) else {
          var error = UploadError(request, response)
          (error.recovery, error.side) = (.resync, .file)
          throw error
        }
        takeBack(hop, on)
        continue
      }
      try checkAllSent(hop.bytes.load(ordering: .relaxed), of: body, request, response)
      guard 300..<400 ~= response.status, response.status != 304, response.status != accepting else { return response }
      let next: HTTPURL
      do throws(UploadError) { next = try target(of: response, to: request) } catch {
        throw leadsToFolder(response, from: request) ? await explained(error, at: request.url) : error
      }
      if request.method == "PUT" { try await checkRedirect(of: first, to: next, response) }
      visited.append(request.url.text)
      if visited.contains(next.text) {
        throw refusal(
          request, response, "answered \(response.status) to \(next), where we come from: it leads in a circle")
      }
      if visited.count > Self.mostRedirects {
        throw refusal(
          request, response,
          "answered \(response.status) to \(next), after \(Self.mostRedirects) redirects in a row: not followed further"
        )
      }
      request.url = next
      takeBack(hop, on)
    }
  }

  /// Like `send(following:)`, for a body that the transport must send only once: a second copy could conflict with what
  /// the server has stored of the first one.
  func sendOnce(
    _ request: inout HTTPRequest, _ body: BlobSlice, accepting: Int? = nil
  ) async throws(UploadError) -> HTTPResponse {
    var exchange = reporting
    exchange.isSentOnce = true
    return try await send(following: &request, body: body, exchange, accepting: accepting)
  }

  /// Throws if the server reports success before the whole body was sent. For a body of unknown length only the
  /// transport can detect this.
  private func checkAllSent(
    _ sent: Int64, of body: BlobSlice?, _ request: HTTPRequest, _ response: HTTPResponse
  ) throws(UploadError) {
    guard response.isSuccess, let length = body?.length, sent < length else { return }
    throw UploadError(
      .resync, .file,
      "\(request.method) \(request.url): answered \(response.status) after \(sent) bytes of \(length) were sent",
      status: response.status)
  }

  /// An exchange that reports the bytes of its body as the upload's.
  var reporting: Exchange { Exchange(sent: { [events] in events.sent($0) }) }

  /// `on`, or a default exchange, with the bytes of its body counted and reported.
  func counting(_ counter: SentCounter, _ on: Exchange? = nil) -> Exchange {
    var counted = on ?? reporting
    if let on { counted.interim = { [self] head in on.interim(secrets().removed(from: head)) } }
    counted.sent = { [sent = counted.sent, knowledge = server.knowledge] count in
      knowledge.contact.noteReached()
      counter.bytes.add(Int64(count), ordering: .relaxed)
      sent(count)
    }
    return counted
  }

  /// Subtracts the bytes that `counting` has counted, because they are about to be sent again.
  func takeBack(_ counter: SentCounter, _ on: Exchange? = nil) {
    let count = -Int(counter.bytes.load(ordering: .relaxed))
    if let on { on.sent(count) } else { events.sent(count) }
  }

  /// Sends `request`, with the credentials and the signature of the destination, only to the destination's origin.
  func exchange(
    _ request: HTTPRequest, _ body: BlobSlice?, _ on: Exchange
  ) async throws(UploadError) -> HTTPResponse {
    guard request.url.isAtServer(of: server.endpoint) else {
      throw UploadError(
        .giveUp, .destination,
        "\(request.method) \(request.url): not sent, since it is not at \(server.endpoint.origin)")
    }
    let response: HTTPResponse
    var (prepared, on) = prepared(request, on)
    on.upload = entry
    do { response = try await server.transport.send(prepared, body: body, on) } catch { throw UploadError(error) }
    server.knowledge.note(response)
    return withoutSecrets(response, to: request)
  }

  private func target(of response: HTTPResponse, to request: HTTPRequest) throws(UploadError) -> HTTPURL {
    let status = response.status
    guard let location = response.headers["Location"], let url = request.url.resolve(location) else {
      throw refusal(request, response, "answered \(response.summary) without a usable Location")
    }
    if !url.isAtServer(of: server.endpoint) {
      let isDowngrade = request.url.scheme == "https" && url.scheme == "http"
      let why = isDowngrade ? "that way is not encrypted" : "credentials and files go to no other origin"
      throw refusal(
        request, response,
        "answered \(status) to \(url), which is \(url.origin) and not \(server.endpoint.origin): not followed, since \(why). "
          + "If that is the right place, give it as the destination")
    }
    guard [307, 308].contains(status) || [301, 302].contains(status) && request.isSafe else {
      throw refusal(
        request, response,
        "answered \(response.summary): not followed, since only 307 and 308 mean that a \(request.method) goes there. "
          + "If that is the right place, give it as the destination")
    }
    if request.deletes, url.path.withoutLastSlash != request.url.path.withoutLastSlash {
      var error = refusal(
        request, response, "answered \(response.summary): not followed, since a deletion there is one of something else"
      )
      // Deletions of other uploads may succeed.
      error.side = .file
      throw error
    }
    return url
  }

  /// Whether the redirect says that a folder has the name of the file. Apache answers so to PUT.
  private func leadsToFolder(_ response: HTTPResponse, from request: HTTPRequest) -> Bool {
    request.method == "PUT" && [301, 302].contains(response.status)
      && response.headers["Location"].flatMap { request.url.resolve($0) }?.path == request.url.path + "/"
  }

  private func refusal(_ request: HTTPRequest, _ response: HTTPResponse, _ what: String) -> UploadError {
    UploadError(.giveUp, .destination, "\(request.method) \(request.url): \(what)", status: response.status)
  }

  /// The response without our secrets that it repeats, so that none of them is shown or stored.
  private func withoutSecrets(_ response: HTTPResponse, to request: HTTPRequest) -> HTTPResponse {
    // The query of a signed request is made by us, and not secret.
    let query = server.sign == nil ? request.url.query : nil
    if server.credentials.known.fields.isEmpty, secretValues.isEmpty, query == nil { return response }
    if !RequestSecrets.mayStand(in: response) { return response }
    let all = secrets(query: query)
    if !response.isSuccess || query == nil { return all.removed(from: response) }
    // A successful response may need the query of the given URL in its own URLs.
    return all.marked(secrets().removed(from: response))
  }

  /// The secrets that must not be shown or stored when a text of the server repeats them. `query`: of the request,
  /// where its values are secret.
  func secrets(query: String? = nil) -> RequestSecrets {
    RequestSecrets(server.credentials.known, query: query, values: secretValues)
  }

  /// The request with the credentials of this destination and its signature, which is added now, or once the request is
  /// complete.
  private func prepared(_ request: HTTPRequest, _ on: Exchange) -> (HTTPRequest, Exchange) {
    var (request, on) = (request, on)
    for field in server.credentials.fields.fields { request.headers.add(field.name, field.value) }
    guard let sign = server.sign else {
      // Files are compared as they are stored. Without this field a server may send any coding. RFC 9110 §12.5.3. A
      // signature would include it, and some proxies change it on the way.
      if request.reads, request.headers["Accept-Encoding"] == nil {
        request.headers.add("Accept-Encoding", "identity")
      }
      return (request, on)
    }
    guard let prepare = on.prepare else {
      sign(&request)
      return (request, on)
    }
    on.prepare = { request, cancel throws(BlobError) in
      try prepare(&request, cancel)
      sign(&request)
    }
    return (request, on)
  }
}

extension BlobSlice? {
  /// Whether the body can be sent again at once, from its first byte. A source that can be read only once is buffered
  /// for the upload, which knows the offset from which the server wants it again.
  fileprivate func canBeSentAgain(_ on: Exchange?) -> Bool {
    guard let self, self.length != 0 else { return true }
    return self.source.access == .random && on?.isSentOnce != true
  }
}

extension HTTPRequest {
  fileprivate var reads: Bool { method == "GET" || method == "HEAD" }

  /// Whether the request asks for a deletion, by its method or by an override field.
  fileprivate var deletes: Bool { (isOverridden ? headers[Self.override] : method) == "DELETE" }
}

extension String {
  fileprivate var withoutLastSlash: Substring { utf8.last == UInt8(ascii: "/") ? dropLast() : self[...] }
}
