import BlobHTTP
import Blobs
import Synchronization

extension UploadContext {
  /// So many redirects in a row are followed.
  static let mostRedirects = 5

  /// Sends `request` with the credentials of this context, and follows the server to other places of its own origin;
  /// the body is opened anew for each. `request` becomes the one that was answered.
  ///
  /// 307 and 308 are followed, 301 and 302 only by what changes nothing: clients may make a GET of anything else. What deletes
  /// follows to its own path alone, with or without a slash at the end: another path is another file, or a folder of files.
  /// Nothing is ever sent to another origin. RFC 9110 §15.4. `accepting`: a status that is the answer, redirect or not.
  func send(
    following request: inout HTTPRequest, body: BlobSlice? = nil, _ on: Exchange? = nil, accepting: Int? = nil
  ) async throws(UploadError) -> HTTPResponse {
    var visited: [String] = []
    while true {
      let hop = Hop()
      var on = on ?? Exchange(sent: sent)
      on.sent = { [told = on.sent] count in
        hop.sent.add(count, ordering: .relaxed)
        told(count)
      }
      let response = try await exchange(request, body, on)
      try checkAllSent(hop.sent.load(ordering: .relaxed), of: body, request, response)
      guard 300..<400 ~= response.status, response.status != 304, response.status != accepting else { return response }
      let next = try target(of: response, to: request)
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
      on.sent(-hop.sent.load(ordering: .relaxed))
    }
  }

  /// A server that says that all is well before it was sent all cannot know. Of a body of unknown length only the
  /// transport can tell.
  private func checkAllSent(
    _ sent: Int, of body: BlobSlice?, _ request: HTTPRequest, _ response: HTTPResponse
  ) throws(UploadError) {
    guard response.isSuccess, let length = body?.length, sent < length else { return }
    throw UploadError(
      .resync, .file,
      "\(request.method) \(request.url): answered \(response.status) after \(sent) bytes of \(length) were sent",
      status: response.status)
  }

  /// Sends `request`, with the credentials and the signature of this context, to its origin and no other.
  func exchange(
    _ request: HTTPRequest, _ body: BlobSlice?, _ on: Exchange
  ) async throws(UploadError) -> HTTPResponse {
    guard request.url.origin == origin else {
      throw UploadError(
        .giveUp, .destination, "\(request.method) \(request.url): not sent, since it is not at \(origin)")
    }
    let response: HTTPResponse
    do { response = try await transport.send(signed(request), body: body, on) } catch { throw UploadError(error) }
    answered(response)
    return try withoutSecrets(response, to: request)
  }

  private func target(of response: HTTPResponse, to request: HTTPRequest) throws(UploadError) -> HTTPURL {
    let status = response.status
    guard let location = response.headers["Location"], let url = request.url.resolve(location) else {
      throw refusal(request, response, "answered \(response.summary) without a usable Location")
    }
    if url.origin != origin {
      let isDowngrade = request.url.scheme == "https" && url.scheme == "http"
      let why = isDowngrade ? "that way is not encrypted" : "credentials and files go to no other origin"
      throw refusal(
        request, response,
        "answered \(status) to \(url), which is \(url.origin) and not \(origin): not followed, since \(why). "
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
      // Another upload may be deleted where it is.
      error.side = .file
      throw error
    }
    return url
  }

  private func refusal(_ request: HTTPRequest, _ response: HTTPResponse, _ what: String) -> UploadError {
    UploadError(.giveUp, .destination, "\(request.method) \(request.url): \(what)", status: response.status)
  }

  /// The answer without what a server repeats of our secrets, so that none is shown or kept. A refusal loses its words. The
  /// place of something that was created cannot be left out, so an answer with a secret in it is refused.
  private func withoutSecrets(_ response: HTTPResponse, to request: HTTPRequest) throws(UploadError) -> HTTPResponse {
    let isRefusal = !response.isSuccess
    if !isRefusal, response.headers["Location"] == nil { return response }
    // What we write into the query of a signed request ourselves is no secret.
    let secrets = SecretWords(headers, query: isRefusal && sign == nil ? request.url.query : nil, values: secretValues)
    if !isRefusal, secrets.isOne(inLocationOf: response) {
      throw UploadError(
        .giveUp, .destination,
        "\(request.method) \(request.url): the Location of its answer repeats a credential, and would be kept: not used",
        status: response.status)
    }
    return secrets.removed(fromRefusal: response)
  }

  func signed(_ request: HTTPRequest) -> HTTPRequest {
    var request = request
    for field in headers.fields { request.headers.add(field.name, field.value) }
    sign?(&request)
    return request
  }
}

extension HTTPRequest {
  /// It asks for a deletion, by its method or by one in its place.
  fileprivate var deletes: Bool { (isOverridden ? headers[Self.override] : method) == "DELETE" }
}

extension String {
  fileprivate var withoutLastSlash: Substring { utf8.last == UInt8(ascii: "/") ? dropLast() : self[...] }
}

/// Body bytes that went to a place which sent us on.
private final class Hop: Sendable {
  let sent = Atomic(0)
}
