import BlobHTTP
import Blobs

/// tus 1.0 §Concatenation.
struct TusConcatenation: UploadConcatenation {
  let tus: Tus

  var ofParts: any UploadProtocol {
    var tus = tus
    tus.isPart = true
    return tus
  }

  func concatenate(
    _ parts: [HTTPURL], as target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    var request = HTTPRequest("POST", target.endpoint, ["Tus-Resumable": Tus.version])
    // The server's own origin is omitted, because many URLs must fit into one field.
    let places = parts.map { $0.origin == target.endpoint.origin ? $0.pathAndQuery : $0.text }
    request.headers.add("Upload-Concat", "final;" + places.joined(separator: " "))
    request.headers.add("Upload-Metadata", TusMetadata.value(of: target))
    let response = try await with.send(following: &request)
    guard response.status == 201 else { throw UploadError(creating: request, response) }
    return try request.uploadURL(response.head)
  }

  func isWhole(_ url: HTTPURL, length: Int64, _ with: UploadContext) async throws(UploadError) -> Bool {
    let request = HTTPRequest("HEAD", url, ["Tus-Resumable": Tus.version])
    let response = try await with.send(request)
    guard response.isSuccess else { throw UploadError(session: request, response) }
    return response.headers.bytes("Upload-Offset") == length
      && response.headers.bytes("Upload-Length") ?? length == length
  }
}

// Uploads in parts.
extension Tus {
  /// Deletes the parts of an upload at the server, but not the file that was made of them.
  func abortParts(of session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    var urls = session.partURLs
    if let whole = session.joined {
      let upload = UploadSession(state: ["url": whole.text, "length": session.state["length"] ?? ""])
      do {
        // A server that concatenates in place may return the URL of one of the parts for the whole.
        if case .finished = try await held(by: upload, with) {
          urls.removeAll { $0 == whole }
        } else {
          urls.insert(whole, at: 0)
        }
      } catch {
        guard case .restart = error.recovery else { throw error }
      }
    }
    for url in urls { try await abort(url, with) }
  }

  /// Receipts for the parts that the server knows.
  func heldParts(of session: UploadSession, _ with: UploadContext) async throws(UploadError) -> [PartReceipt] {
    var receipts: [PartReceipt] = []
    for (number, url) in session.partURLs.enumerated() {
      let request = HTTPRequest("HEAD", url, ["Tus-Resumable": Self.version])
      let response = try await with.send(request)
      guard let held = response.isSuccess ? response.headers.bytes("Upload-Offset") : nil else {
        let error = UploadError(session: request, response)
        if error.recovery == .restart { continue }
        throw error
      }
      receipts.append(PartReceipt(number: number + 1, start: 0, held: held))
    }
    return receipts
  }
}

/// An upload in parts has no URL of its own before all parts have arrived; each part has one.
extension UploadSession {
  private static let prefix = "part "

  /// A session for parts of `size` bytes, except for the last one.
  init(parts size: Int64, length: Int64) {
    self.init(state: ["parts": String(size), "length": String(length)])
  }

  /// Size in bytes of each part except the last one; nil: the upload has no parts.
  var sizeOfParts: Int64? { state["parts"].flatMap { Int64(digits: $0) }.flatMap { $0 > 0 ? $0 : nil } }

  /// The upload that the server has made of the parts, recorded before the first part is deleted. nil: the server was
  /// not asked to concatenate, or has not responded.
  var joined: HTTPURL? {
    get { state["joined"].flatMap { HTTPURL($0) } }
    set { state["joined"] = newValue?.text }
  }

  /// The session with the URLs of the parts at the server, so that they can be deleted.
  func holding(_ receipts: [PartReceipt]) -> UploadSession {
    var session = self
    for receipt in receipts { session.state["\(Self.prefix)\(receipt.number)"] = receipt.state["url"] }
    return session
  }

  var partURLs: [HTTPURL] {
    state.filter { $0.key.hasPrefix(Self.prefix) }.sorted { $0.key < $1.key }.compactMap { HTTPURL($0.value) }
  }
}

extension JournalEntry {
  /// The session with all that the server has of the upload, so that it can be deleted.
  public var sessionWithParts: UploadSession? { session?.holding(receipts) }

  /// The session for a query how much the server has: the whole upload once the parts were concatenated, since the
  /// parts are deleted then.
  package var sessionToAsk: UploadSession? {
    guard let whole = session?.joined, let length = intent.length else { return sessionWithParts }
    return UploadSession(state: ["url": whole.text, "length": String(length)])
  }

  /// The server has concatenated the parts, so only the parts may remain to be deleted.
  package var isJoined: Bool { session?.joined != nil }
}

extension HTTPURL {
  fileprivate var pathAndQuery: String { path + (query.map { "?\($0)" } ?? "") }
}
