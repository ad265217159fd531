import BlobHTTP
import Blobs
import Synchronization

extension Uploader {
  /// Reads the upload back and compares it with the source, byte by byte, both as streams.
  ///
  /// Only for servers that return a file under its URL; for others an error is thrown. `location`: from `UploadResult`;
  /// a tus server or a form receiver may have the bytes only there. Returns the URL that was read.
  @discardableResult
  public func verify(
    _ source: any BlobSource, _ info: BlobInfo, at target: UploadTarget, location: String? = nil
  ) async throws(UploadError) -> HTTPURL {
    let slice = BlobSlice(source, length: info.length, validator: info.validator)
    return try await verify(.bytes(of: slice), at: target, location: location)
  }

  /// As above, with what is known of a source that cannot be read again.
  func verify(
    _ expected: ExpectedContent, at target: UploadTarget, location: String?
  ) async throws(UploadError) -> HTTPURL {
    var (place, failures, farthest) = (target.url, FailureCount(), Int64(0))
    var comparison: Comparison?
    do throws(UploadError) {
      try await repeating { () async throws(UploadError) in
        let context = context()
        place = try await destination.uploadProtocol.place(of: target, location: location, context)
        let begun = if let comparison, comparison.url == place { comparison } else { Comparison(expected, place) }
        comparison = begun
        try await context.compare(begun)
      } _: { error async throws(UploadError) in
        // The bytes that have arrived need not come again, so a line that breaks now and then is no reason to give up.
        // If the server sends all bytes again, only bytes after the farthest offset so far count as progress.
        let more = (comparison?.received ?? 0) - farthest
        if more >= UploadContext.leastPart {
          farthest += more
          failures.noteSent(more)
          _ = failures.noteKept(more)
        }
        try await wait(after: error, &failures, "\(target.path)")
      }
    } catch {
      throw destination.uploadProtocol.judge(readingBack: error, location: location)
    }
    return place
  }

  /// The content of a small file at the destination; nil: it has no file of that name. Throws if the content has more than
  /// `most` bytes, or cannot be read back there.
  package func content(of target: UploadTarget, atMost most: Int) async throws(UploadError) -> [UInt8]? {
    try await patiently("\(target.path)") { () async throws(UploadError) in
      let context = context()
      let url = try await destination.uploadProtocol.place(of: target, location: nil, context)
      var request = HTTPRequest("GET", url)
      let content = Mutex<[UInt8]>([])
      let on = Exchange(received: { bytes throws(BlobError) in
        let isShort = content.withLock { content in
          if content.count + bytes.count <= most { content += bytes }
          return content.count + bytes.count <= most
        }
        if !isShort { throw BlobError(.unsupported, "GET \(url): the content has more than \(most) bytes") }
      })
      let response = try await context.send(following: &request, on)
      if [404, 410].contains(response.status) { return nil }
      if response.status != 200 { throw UploadError(reading: request, response) }
      return content.withLock { $0 }
    }
  }
}

extension UploadContext {
  /// Reads the content of `url` and compares it with `slice`. A difference throws an error with `.giveUp`, side `.file`
  /// and no status.
  func compare(_ slice: BlobSlice, with url: HTTPURL) async throws(UploadError) {
    try await compare(Comparison(.bytes(of: slice), url))
  }

  /// Goes on with a comparison that was interrupted, with the bytes that have not arrived.
  fileprivate func compare(_ comparison: Comparison) async throws(UploadError) {
    let read = try await readBack(comparison)
    if !read.isCompared { throw UploadError(reading: read.request, read.response) }
  }

  /// Sends GET for `url`. If the response is 200, its content is compared with what is `expected`, and a difference is
  /// thrown as by `compare`. `mayBeShort`: content that ends before a slice does is not a difference.
  func readBack(
    _ expected: ExpectedContent, from url: HTTPURL, mayBeShort: Bool = false
  ) async throws(UploadError) -> ReadBack {
    try await readBack(Comparison(expected, url), mayBeShort: mayBeShort)
  }

  private func readBack(
    _ comparison: Comparison, mayBeShort: Bool = false
  ) async throws(UploadError) -> ReadBack {
    // The comparison reads the source on the thread that receives the content. That read may block without a limit, so
    // cancelling the task cancels the comparison.
    let result: Result<ReadBack, UploadError> = await withTaskCancellationHandler {
      do throws(UploadError) {
        return .success(try await read(comparison, mayBeShort))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      comparison.cancel.cancel()
    }
    return try result.get()
  }

  private func read(_ comparison: Comparison, _ mayBeShort: Bool) async throws(UploadError) -> ReadBack {
    var smallParts = 0
    while true {
      let before = comparison.received
      var request = HTTPRequest("GET", comparison.url)
      guard let answered = try await receive(&request, comparison) else { continue }
      guard answered.hasFile else { return ReadBack(request: request, response: answered) }
      if comparison.lacksBytes {
        // The response (206) had only a part of the missing bytes. RFC 9110 §15.3.7.
        if comparison.received - before < Self.leastPart { smallParts += 1 }
        if smallParts < Self.mostSmallParts { continue }
        throw UploadError(
          .giveUp, .file,
          "GET \(comparison.url): cannot be read back: the server gives parts of less than \(Self.leastPart) bytes")
      }
      let end = try await readingSource { cancel, _ throws(BlobError) in
        cancel.whileWaiting(wakeUp: comparison.cancel.cancel) {
          Result { () throws(UploadError) in try comparison.end(mayBeShort: mayBeShort) }
        }
      }
      return ReadBack(request: request, response: answered, isCompared: true, isShort: try !end.get())
    }
  }

  /// A response with fewer bytes does not count as progress.
  fileprivate static var leastPart: Int64 { 16 << 10 }
  private static var mostSmallParts: Int { 100 }

  /// Asks for the bytes that have not arrived, and compares them. nil: there is another version now, or another part was given,
  /// and all bytes are to be asked for.
  private func receive(
    _ request: inout HTTPRequest, _ comparison: Comparison
  ) async throws(UploadError) -> HTTPResponse? {
    let rest = comparison.fieldsForRest
    if rest == nil { comparison.beginAgain() }
    // A cache on the way knows nothing of the file that is at the server now. RFC 9111 §5.2.1.4.
    request.headers.add("Cache-Control", "no-cache")
    for field in rest?.fields ?? [] { request.headers.add(field.name, field.value) }
    let start = comparison.received
    let coding = Mutex<String?>(nil)
    let hasBegun = Mutex(false)
    let answered: HTTPResponse
    do {
      let on = Exchange(
        received: { bytes throws(BlobError) in
          server.compared(bytes.count)
          try comparison.take(bytes)
        },
        began: { head throws(BlobError) in
          hasBegun.withLock { $0 = true }
          guard let named = head.contentCoding else { return try comparison.begin(head) }
          coding.withLock { $0 = named }
          throw BlobError(.unsupported, "the content has a coding")
        })
      answered = try await send(following: &request, on)
    } catch {
      if let coding = coding.withLock({ $0 }) { throw .coded(coding, request) }
      if let difference = comparison.difference { throw difference }
      // The answer was another part. Without `Range` there is none.
      if rest != nil, comparison.received == 0 { return nil }
      throw error
    }
    guard rest != nil else { return answered }
    // Not every transport tells of the head before the content, and none does where there is no content.
    if answered.hasFile, hasBegun.withLock({ $0 }) || comparison.isRest(answered.head, from: start) { return answered }
    guard [200, 206, 412, 416].contains(answered.status) else { return answered }
    comparison.beginAgain()
    return nil
  }
}

extension HTTPResponse {
  /// Whether this has content that can be compared.
  fileprivate var hasFile: Bool { status == 200 || status == 206 }
}

/// A response to GET for a comparison.
struct ReadBack: Sendable {
  /// The request for this response, after redirects.
  var request: HTTPRequest
  var response: HTTPResponse
  /// The content was compared, without a difference.
  var isCompared = false
  /// The content ended before the slice did, without a difference before that.
  var isShort = false
}

extension HTTPHead {
  /// The coding that the content was compressed with; nil: it is as it was stored. Some S3 servers return other values,
  /// which the client has stored with the file. RFC 9110 §8.4.1.
  var contentCoding: String? {
    let codings = ["gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"]
    return headers.list("Content-Encoding").first { named in codings.contains { named.isSameField($0) } }
  }
}

extension UploadError {
  /// The content that is to be compared is compressed, though the request asked for it as it is.
  fileprivate static func coded(_ coding: String, _ request: HTTPRequest) -> UploadError {
    UploadError(
      .giveUp, .file,
      "\(request.method) \(request.url): cannot be read back: the server sends it compressed (\(coding)), though it was "
        + "asked not to",
      status: 200)
  }

  /// The response to a GET for a comparison has another status than 200.
  init(reading request: HTTPRequest, _ response: HTTPResponse) {
    self.init(request, response)
    message = "\(request.method) \(request.url): cannot be read back: \(response.summary)"
    if case .retry = recovery { return }
    (recovery, side) = (.giveUp, .file)
  }
}
