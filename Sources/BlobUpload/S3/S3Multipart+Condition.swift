import BlobHTTP
import Blobs

// No object is replaced unless the user asks for it, whether or not the server honours conditions.
extension S3Multipart {
  /// A name must be checked before it is written to: the server is not known to honour the condition of a PUT.
  func asksFirst(overwriting: Bool) -> Bool { !overwriting && !isAmazon && !conditions.areHeeded }

  /// The object with this name; nil: the name is free. Throws if that cannot be found out, unless the server honours
  /// conditions.
  func look(at url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> S3Object? {
    conditions.noteQuestion()
    let head = Self.head(url)
    var response = try await send(head, nil, with)
    if [400, 403].contains(response.status) {
      // The response to HEAD has no body. The response to GET gives the reason, and `send` renews an expired token for
      // it.
      let get = HTTPRequest("GET", url, ["Range": "bytes=0-0"])
      let answer = try await send(get, nil, with)
      if answer.status == 403, S3ErrorResponse(answer)?.isGeneral != true {
        return try await lookedInVain(get, answer, with)
      }
      if answer.isSuccess || answer.status == 416 {
        response = try await send(head, nil, with)
      } else {
        response = answer
      }
    }
    if response.status == 200 { return S3Object(response.headers) }
    if [404, 410].contains(response.status), S3ErrorResponse(response)?.isGeneral != true { return nil }
    throw UploadError(head, response, s3: S3ErrorResponse(response), signer)
  }

  /// The object that a request may replace. A key that may not look at it replaces whatever is there.
  func replacedFile(at url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> ReplacedFile {
    let head = Self.head(url)
    let response = try await send(head, nil, with)
    return try ReplacedFile(response, or: UploadError(head, response, s3: S3ErrorResponse(response), signer))
  }

  /// A refusal because the name exists with the same bytes is a success.
  func afterRefusal(
    _ request: HTTPRequest, _ response: HTTPResponse, _ url: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let refusal = S3ErrorResponse(response)
    var error = UploadError(request, response, s3: refusal, signer)
    if response.status == 412, let there = try await find(url, with) {
      // A 412 for a free name may have another cause and proves nothing.
      if request.headers["If-None-Match"] != nil { conditions.noteHeeded() }
      return try await claim(there, url, with)
    }
    if isOfGoneObject(request, response) { error.status = 412 }
    // Two requests for one name ran at the same time: the second one tries again.
    if response.status == 409 || response.status == 412 { error.recovery = .retry(after: nil) }
    throw error
  }

  /// Whether a request was refused because the object that it was to replace is gone.
  func isOfGoneObject(_ request: HTTPRequest, _ response: HTTPResponse) -> Bool {
    response.status == 404 && request.headers["If-Match"] != nil && S3ErrorResponse(response)?.code == "NoSuchKey"
  }

  static func head(_ url: HTTPURL) -> HTTPRequest {
    HTTPRequest("HEAD", url, ["x-amz-checksum-mode": "ENABLED"])
  }

  /// Sends a stored object again, to test whether the server honours the condition. Returns the response if the server
  /// has stored it again; nil: the first response is still valid.
  func tryCondition(
    _ request: HTTPRequest, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse? {
    var isHeeded: Bool?
    defer { conditions.endTrial(isHeeded) }
    var unheard = with
    // These bytes are not part of the upload's progress.
    unheard.events = UncountedEvents(with.events)
    let response = try await send(request, vouchedBy: body, unheard).0
    if response.status == 412 {
      isHeeded = true
    } else if response.saysStored {
      try checkStored(request, response)
      isHeeded = false
      return response
    } else if 400..<500 ~= response.status {
      // The server refuses the second one with another status, and has changed nothing.
      isHeeded = false
    } else {
      // The server's state is unknown: the next attempt checks the name.
      var error = UploadError(request, response, s3: S3ErrorResponse(response), signer)
      error.recovery = .retry(after: response.headers.retryAfter)
      throw error
    }
    return nil
  }

  /// The access key may not check names, for example because it may only write. Whether the server honours the
  /// condition is tested once, with an empty object beside the one to be written.
  private func lookedInVain(
    _ get: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext
  ) async throws(UploadError) -> S3Object? {
    if conditions.areHeeded { return nil }
    try await conditions.gate.pass { () async throws(UploadError) in
      if !conditions.areHeeded { try await tryOwnName(beside: get.url, with) }
    }
    if conditions.areHeeded { return nil }
    var error = UploadError(get, response, s3: S3ErrorResponse(response), signer)
    error.message +=
      ": whether that name is taken cannot be asked with this key, and the server ignores the condition that would keep an "
      + "object of that name (If-None-Match): let the key read there, or replace what is there by --overwrite"
    throw error
  }

  /// A server that honours the condition refuses the second PUT of an existing name. Another client may delete the
  /// object in between, so there are three attempts.
  private func tryOwnName(beside url: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    var unheard = with
    unheard.events = UncountedEvents(with.events)
    let place = url.folder.appending(pathBytes: ".fullbore-condition".utf8)
    let request = HTTPRequest("PUT", place, ["If-None-Match": "*"])
    for _ in 0..<3 {
      let response = try await send(request, vouchedBy: BlobSlice(DataSource([])), unheard).0
      if response.status == 412 {
        conditions.noteHeeded()
        break
      }
      guard response.saysStored else { throw UploadError(request, response, s3: S3ErrorResponse(response), signer) }
    }
    // If the key may not delete, the empty object stays and answers the next push.
    _ = try? await send(HTTPRequest("DELETE", place), nil, unheard)
  }

  /// Throws if a successful response is in fact an error, according to its fields or its body. S3 returns an ETag for
  /// everything that it stores; a server that responds to every request with a web page does not. Some servers send the
  /// status before they know the result.
  func checkStored(_ request: HTTPRequest, _ response: HTTPResponse) throws(UploadError) {
    if !response.body.isEmpty, let refusal = S3ErrorResponse(response), refusal.name != nil {
      var error = UploadError(request, response, s3: refusal, signer)
      error.status = nil
      throw error
    }
    // S3's response has no body of interest.
    if !response.body.isEmpty, response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true {
      throw UploadError(
        .giveUp, .destination,
        "\(request.method) \(request.url): answered \(response.status) with a page of \(response.body.count) bytes, as S3 never "
          + "does. Is the endpoint right?", status: response.status)
    }
    if let tag = response.headers["ETag"], !tag.isEmpty { return }
    throw UploadError(
      .giveUp, .destination,
      "\(request.method) \(request.url): answered \(response.status) without an ETag, as S3 never does. Is the endpoint "
        + "right?", status: response.status)
  }
}
