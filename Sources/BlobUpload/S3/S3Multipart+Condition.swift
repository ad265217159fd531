import BlobHTTP
import Blobs

// Nothing is replaced without being asked to, whatever a server makes of conditions.
extension S3Multipart {
  /// A name must be asked for before it is written to: the server is not known to heed the condition that a PUT carries.
  func asksFirst(overwriting: Bool) -> Bool { !overwriting && !isAmazon && !conditions.areHeeded }

  /// What has the name; nil: it is free. Throws where that cannot be found out, unless the server heeds conditions.
  func look(at url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> S3Object? {
    conditions.noteQuestion()
    let head = Self.head(url)
    var response = try await send(head, nil, with)
    if [400, 403].contains(response.status) {
      // The answer to HEAD has no words. The one to GET says why, and what was signed with an old token is signed anew.
      let get = HTTPRequest("GET", url, ["Range": "bytes=0-0"])
      let told = try await send(get, nil, with)
      if told.status == 403, S3Refusal(told)?.isGeneral != true {
        return try await lookedInVain(get, told, with)
      }
      if told.isSuccess || told.status == 416 { response = try await send(head, nil, with) } else { response = told }
    }
    if response.status == 200 { return S3Object(response.headers) }
    if [404, 410].contains(response.status), S3Refusal(response)?.isGeneral != true { return nil }
    throw UploadError(head, response, s3: S3Refusal(response), signer)
  }

  static func head(_ url: HTTPURL) -> HTTPRequest {
    HTTPRequest("HEAD", url, ["x-amz-checksum-mode": "ENABLED"])
  }

  /// Sends an object that is stored once more, to see whether the server heeds the condition. Returns the answer, if the
  /// server has stored it again; nil: the first answer still holds.
  func tryCondition(
    _ request: HTTPRequest, _ body: BlobSlice, _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse? {
    var isHeeded: Bool?
    defer { conditions.endTrial(isHeeded) }
    var unheard = with
    // These bytes are not of the upload.
    unheard.events = UncountedEvents(with.events)
    let response = try await send(request, vouchedBy: body, unheard).0
    if response.status == 412 {
      isHeeded = true
    } else if response.saysStored {
      try checkStored(request, response)
      isHeeded = false
      return response
    } else if 400..<500 ~= response.status {
      // The server refuses a second one in words of its own, and has changed nothing.
      isHeeded = false
    } else {
      // What the server has now is not known: the next try asks for the name.
      var error = UploadError(request, response, s3: S3Refusal(response), signer)
      error.recovery = .retry(after: response.headers.retryAfter)
      throw error
    }
    return nil
  }

  /// The key may not look at names, as one that may only write. Whether the server heeds the condition is found out once,
  /// with an empty object of our own beside the one that is to be written.
  private func lookedInVain(
    _ get: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext
  ) async throws(UploadError) -> S3Object? {
    if conditions.areHeeded { return nil }
    try await conditions.gate.pass { () async throws(UploadError) in
      if !conditions.areHeeded { try await tryOwnName(beside: get.url, with) }
    }
    if conditions.areHeeded { return nil }
    var error = UploadError(get, response, s3: S3Refusal(response), signer)
    error.message +=
      ": whether that name is taken cannot be asked with this key, and the server ignores the condition that would keep an "
      + "object of that name (If-None-Match): let the key read there, or replace what is there by --overwrite"
    throw error
  }

  /// The second PUT of a name that is there is refused by a server that heeds the condition. Another client may delete the
  /// object in between, so it is tried more than twice.
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
      guard response.saysStored else { throw UploadError(request, response, s3: S3Refusal(response), signer) }
    }
    // Where the key may not delete, the empty object stays, and answers the next push.
    _ = try? await send(HTTPRequest("DELETE", place), nil, unheard)
  }

  /// A success that says by its fields or its body that it is none is refused. S3 tells the ETag of whatever it stores; a
  /// server that answers every request with a page does not. Some begin an answer before they know how it will end.
  func checkStored(_ request: HTTPRequest, _ response: HTTPResponse) throws(UploadError) {
    if !response.body.isEmpty, let refusal = S3Refusal(response), refusal.name != nil {
      var error = UploadError(request, response, s3: refusal, signer)
      error.status = nil
      throw error
    }
    // S3 has nothing to say beside the fields.
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
