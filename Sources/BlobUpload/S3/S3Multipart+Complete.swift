import BlobCrypto
import BlobHTTP
import Blobs

extension S3Multipart {
  /// Stores the expected ETag and checksum first: if the response is lost, they identify the object.
  public func complete(_ session: UploadSession, _ parts: [PartReceipt], _ with: UploadContext)
    async throws(UploadError) -> UploadResult
  {
    var upload = try S3Upload(session)
    let whole = wholeChecksum(of: parts)
    var expecting = session
    // A pipe's length is known only once it has ended.
    let length = upload.length ?? parts.lazy.map(\.held).clampedSum
    upload.length = length
    expecting.length = length
    expecting.state["etag"] = Self.tag(of: parts)
    expecting.state["value"] = whole
    with.opened(expecting)
    if let found = try await alreadyNamed(expecting, upload, with) { return found }

    var request = HTTPRequest("POST", upload.url(), ["Content-Type": "application/xml"])
    request.replace(only: .nothing)
    if upload.knowsWhole {
      request.headers["x-amz-mp-object-size"] = String(length)
      request.headers["x-amz-checksum-type"] = "FULL_OBJECT"
      if let whole { request.headers[options.checksum.s3Field] = whole }
    }
    let text = Array(list(of: parts).utf8)
    request.headers["x-amz-content-sha256"] = Digest.hex(of: text, .sha256)
    let response = try await send(&request, text, completing: upload, with)
    // The server may have sent the status before it knew the result.
    if response.isSuccess, let answer = XMLTree(response.body), answer.name == "CompleteMultipartUploadResult" {
      if let name = otherName(in: answer, than: upload.object) {
        return try await published(as: name, request, expecting, with)
      }
      guard let tag = answer.text("ETag"), !tag.isEmpty else { return try await untold(upload, request, with) }
      return UploadResult(location: upload.object.description, state: Self.state(tag))
    }
    return try await afterRefusal(completing: request, response, expecting, with)
  }

  /// Sends the completion. If it may replace an object, it names the one that the session names, or else the one that is there
  /// now.
  private func send(
    _ request: inout HTTPRequest, _ text: [UInt8], completing upload: S3Upload, _ with: UploadContext
  ) async throws(UploadError) -> HTTPResponse {
    if upload.overwrites, let named = upload.replaced {
      request.replace(only: named)
      return try await send(request, BlobSlice(DataSource(text)), with)
    }
    var target = UploadTarget(endpoint: upload.object, url: upload.object, path: "", length: nil)
    target.overwrite = upload.overwrites
    var replacement = Replacement()
    while true {
      if upload.overwrites { request.replace(only: try await replacement.file(at: target, self, with)) }
      let response = try await send(request, BlobSlice(DataSource(text)), with)
      var error = UploadError(request, response)
      // The object is gone, and not the upload.
      if isOfGoneObject(request, response) { error.status = 412 }
      if response.isSuccess { return response }
      if try !replacement.isOutdated(error, isCreated: false, target, with) { return response }
    }
  }

  private func afterRefusal(
    completing request: HTTPRequest, _ response: HTTPResponse, _ session: UploadSession, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let upload = try S3Upload(session)
    // A 200 without a result, or with an error after it, leaves open what was made; the object itself may show it.
    if response.isSuccess, let result = try await made(by: upload, with) { return result }
    let refusal = S3ErrorResponse(response)
    var error = UploadError(request, response, s3: refusal, signer)
    switch (response.status, refusal?.name) {
    case (404, "NoSuchKey") where upload.replaced != nil:
      // The object that is to be replaced is gone, or, as Ceph says it, the upload is.
      if case .finished(let result) = try await held(by: session, with) { return result }
      error.status = 412
    case (_, "NoSuchUpload"), (_, "NoSuchKey"), (404, nil): return try await published(session, upload, with)
    // The caller that has named the object decides what follows: a server applies its rule for existing files again.
    case (412, _) where upload.replaced != nil: break
    case (412, _):
      guard let there = try await find(upload.object, with) else {
        error.recovery = .resync
        throw error
      }
      // Nobody else would delete the upload, and its storage would cost money.
      try await abort(upload, with)
      return try await claim(there, upload.object, with)
    case (409, _): error.recovery = .resync
    // Ceph responds with 5xx if the upload was already completed: the upload is gone, and the object exists.
    case (500..., _): if case .finished(let result) = try await held(by: session, with) { return result }
    // The object does not show that this upload has made it, so the completion is tried again.
    case (200..<300, nil):
      error.recovery = .resync
      error.message =
        "\(request.method) \(request.url): answered \(response.status) without a CompleteMultipartUploadResult, so that it is "
        + "not known whether the object was made"
    case (200..<300, _):
      if error.recovery == .giveUp, refusal?.recovery == nil { error.recovery = .resync }
      error.status = nil
    default: break
    }
    throw error
  }

  /// The object that already has the name, if the server may ignore the condition of the completion: some servers
  /// honour it only for PUT. The upload is deleted then, because nobody else would delete it and its storage would cost
  /// money.
  private func alreadyNamed(
    _ session: UploadSession, _ upload: S3Upload, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult? {
    guard !upload.overwrites, !isAmazon, let there = try await look(at: upload.object, with) else { return nil }
    try await abort(upload, with)
    let expected = try S3Upload(session)
    if expected.made(there) {
      // An earlier completion whose response was lost.
      return UploadResult(location: upload.object.description, state: Self.state(there.tag), isCompared: true)
    }
    return try await claim(there, upload.object, with)
  }

  /// The server reports an object with another name. A server that names an access point by its alias does so too, and
  /// has the object under our name.
  private func published(
    as name: String, _ request: HTTPRequest, _ session: UploadSession, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    do throws(UploadError) {
      return try await published(session, try S3Upload(session), with)
    } catch {
      guard error.recovery == .restart else { throw error }
      throw UploadError(
        .giveUp, .destination,
        "\(request.method) \(request.url): the server says that it has stored \(name.shownLine(200)), which is another "
          + "name, and the file is not at \(request.url)")
    }
  }

  /// The server reports success without an ETag, as Ceph does and S3 never does, so the object is checked with HEAD. If
  /// that is forbidden, the server is trusted.
  private func untold(
    _ upload: S3Upload, _ request: HTTPRequest, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    let head = Self.head(upload.object)
    let response = try await send(head, nil, with)
    func untrue(_ what: String) -> UploadError {
      UploadError(
        .restart, .file, "\(request.method) \(request.url): the server says that it has stored the object, and \(what)")
    }
    switch response.status {
    case 403: return UploadResult(location: upload.object.description)
    case 404, 410: throw untrue("has nothing under that name")
    case _ where response.isSuccess: break
    default: throw UploadError(head, response, s3: S3ErrorResponse(response), signer)
    }
    let there = S3Object(response.headers)
    if let found = there.length, let length = upload.length, found != length {
      throw untrue("has \(found) bytes there, and was sent \(length)")
    }
    return UploadResult(location: upload.object.description, state: Self.state(there.tag))
  }

  /// Bucket and key in the response to a completion; nil if they are those of `object`, or missing.
  private func otherName(in answer: XMLTree, than object: HTTPURL) -> String? {
    let (bucket, key) = (answer.text("Bucket"), answer.text("Key"))
    let isBucket = bucket.map { bucketPath.hasSuffix("/\($0)/") || object.host.hasPrefix("\($0).") } ?? true
    let isKey = key.map { Array($0.utf8) == object.key(in: bucketPath) } ?? true
    return isBucket && isKey ? nil : "\(bucket ?? "…")/\(key ?? "…")"
  }

  /// The object that a completion has created whose response was lost.
  func published(
    _ session: UploadSession, _ upload: S3Upload, _ with: UploadContext
  ) async throws(UploadError) -> UploadResult {
    if let result = try await made(by: upload, with) { return result }
    throw UploadError(.restart, .file, "\(upload.object): the upload is gone there")
  }

  /// The object, if its length and its checksum or ETag prove that a completion of the upload has made it.
  private func made(by upload: S3Upload, _ with: UploadContext) async throws(UploadError) -> UploadResult? {
    guard upload.tag != nil || upload.whole != nil, let there = try await find(upload.object, with), upload.made(there)
    else { return nil }
    return UploadResult(location: upload.object.description, state: Self.state(there.tag), isCompared: true)
  }

  private func list(of parts: [PartReceipt]) -> String {
    let lines = parts.map { part -> String in
      var line = "<Part><PartNumber>\(part.number)</PartNumber><ETag>\((part.state["etag"] ?? "").escapedXML)</ETag>"
      if part.state["echoed"] != nil, let digest = part.digest {
        line += "<Checksum\(digest.algorithm.s3Name)>\(base64(digest.value))</Checksum\(digest.algorithm.s3Name)>"
      }
      return line + "</Part>"
    }
    return "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(lines.joined())"
      + "</CompleteMultipartUpload>"
  }

  /// The checksum of the whole, combined from those of the consecutive parts; nil if one is unknown.
  private func wholeChecksum(of parts: [PartReceipt]) -> String? {
    guard options.checksum.isJoinable else { return nil }
    var sum = Digest.value(of: [], options.checksum)
    for part in parts {
      guard let digest = part.digest, digest.algorithm == options.checksum,
        let joined = Digest.joined(sum, digest.value, count: part.held, options.checksum)
      else { return nil }
      sum = joined
    }
    return base64(sum)
  }

  /// The ETag of the whole on most servers: the MD5 of the parts' MD5s, and the number of parts.
  static func tag(of parts: [PartReceipt]) -> String? {
    var bytes: [UInt8] = []
    for part in parts {
      guard let tag = part.state["etag"]?.unquoted, tag.utf8.count == 32, let value = hexBytes(tag) else { return nil }
      bytes += value
    }
    return Digest.Algorithm("md5").map { "\(Digest.hex(of: bytes, $0))-\(parts.count)" }
  }

  static func hexBytes(_ text: String) -> [UInt8]? {
    let digits = Array(text.utf8)
    if digits.count % 2 != 0 { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16) else { return nil }
      bytes.append(byte)
    }
    return bytes
  }
}

extension PartReceipt {
  /// The digest of the part's bytes; nil: unknown.
  var digest: (algorithm: Digest.Algorithm, value: [UInt8])? {
    let words = state[Self.digestKey]?.split(separator: " ") ?? []
    guard words.count == 2, let algorithm = Digest.Algorithm(String(words[0])),
      let value = bytes(base64: String(words[1])), value.count == algorithm.size
    else { return nil }
    return (algorithm, value)
  }
}

extension String {
  /// An ETag without its quotes.
  var unquoted: String { hasPrefix("\"") && hasSuffix("\"") && utf8.count > 1 ? String(dropFirst().dropLast()) : self }
}
