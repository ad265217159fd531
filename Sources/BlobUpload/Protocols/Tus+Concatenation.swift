import BlobHTTP
import Blobs

/// tus 1.0 §Concatenation.
extension Tus {
  /// As it creates uploads that are parts of another one.
  var forParts: Tus {
    var tus = self
    tus.isPart = true
    return tus
  }

  /// Makes one upload of parts that are whole, in their order, and returns its URL. Who asks twice may get it twice, or the
  /// same again.
  func concatenate(
    _ parts: [HTTPURL], as target: UploadTarget, _ with: UploadContext
  ) async throws(UploadError) -> HTTPURL {
    var request = HTTPRequest("POST", target.endpoint, ["Tus-Resumable": Self.version])
    // Without the origin, which is ours: so many URLs must fit into one field.
    let places = parts.map { $0.origin == target.endpoint.origin ? $0.pathAndQuery : $0.text }
    request.headers.add("Upload-Concat", "final;" + places.joined(separator: " "))
    request.headers.add("Upload-Metadata", Self.metadata(of: target))
    let response = try await with.send(following: &request)
    guard response.status == 201 else { throw UploadError(creating: request, response) }
    return try request.uploadURL(response.head)
  }

  /// Deletes what the server has of an upload in parts, but for the file that they were put together to.
  func abortParts(of session: UploadSession, _ with: UploadContext) async throws(UploadError) {
    var urls = session.partURLs
    if let whole = session.joined {
      let upload = UploadSession(state: ["url": whole.text, "length": session.state["length"] ?? ""])
      do {
        // A server that puts the parts together in place may give the whole the URL of one of them.
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

  /// What the server has of the parts that it knows.
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

  /// Whether an upload has all its bytes. One that is put together of others may take its time.
  func isWhole(_ url: HTTPURL, length: Int64, _ with: UploadContext) async throws(UploadError) -> Bool {
    let request = HTTPRequest("HEAD", url, ["Tus-Resumable": Self.version])
    let response = try await with.send(request)
    guard response.isSuccess else { throw UploadError(session: request, response) }
    return response.headers.bytes("Upload-Offset") == length
      && response.headers.bytes("Upload-Length") ?? length == length
  }
}

/// An upload in parts has no URL of its own before they are all there; each part has one.
extension UploadSession {
  private static let prefix = "part "

  /// In parts of so many bytes, but for the last.
  init(parts size: Int64, length: Int64) {
    self.init(state: ["parts": String(size), "length": String(length)])
  }

  /// Bytes of each part but the last; nil: it is one upload.
  var sizeOfParts: Int64? { state["parts"].flatMap { Int64(digits: $0) }.flatMap { $0 > 0 ? $0 : nil } }

  /// The upload that the server has put the parts together to: it is known before the first part is deleted. nil: the server
  /// was not asked for it, or has not answered.
  var joined: HTTPURL? {
    get { state["joined"].flatMap { HTTPURL($0) } }
    set { state["joined"] = newValue?.text }
  }

  /// With the parts that the server has, so that they can be deleted.
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
  /// All that the server has of it: what is to be deleted when it is given up.
  public var sessionWithParts: UploadSession? { session?.holding(receipts) }

  /// What tells how much of it the server has: the whole, once the parts were put together, since the parts are deleted then.
  package var sessionToAsk: UploadSession? {
    guard let whole = session?.joined, let length = intent.length else { return sessionWithParts }
    return UploadSession(state: ["url": whole.text, "length": String(length)])
  }

  /// The server has put its parts together: what is left of it are the parts.
  package var isJoined: Bool { session?.joined != nil }
}

extension HTTPURL {
  fileprivate var pathAndQuery: String { path + (query.map { "?\($0)" } ?? "") }
}
