import BlobHTTP

/// What a server has of an upload after it has responded 403 to bytes for it.
enum HoldingAfterRefusal {
  /// The server does not know the upload, or did not respond to the query.
  case unknown
  /// The server has as many bytes as before: it refuses these bytes, or the method of the request.
  case unchanged
  /// The server has another number of bytes: it has processed an earlier request, whose response was lost.
  case changed
  /// The server has all bytes. Servers respond 403 to bytes for an upload that is already complete.
  case whole(UploadResult)

  var isUnchanged: Bool { if case .unchanged = self { true } else { false } }
}

extension UploadProtocol {
  /// Queries what the server has, if `response` to bytes from `offset` on is a 403; nil: it is not.
  func holding(
    of session: UploadSession, from offset: Int64, after response: HTTPResponse, _ with: UploadContext
  ) async -> HoldingAfterRefusal? {
    guard response.status == 403 else { return nil }
    // An upload that cannot be queried counts as gone.
    switch try? await held(by: session, with) {
    case .upTo(let held, _): return held == offset ? .unchanged : .changed
    case .finished(let result): return .whole(result)
    case .parts, nil: return .unknown
    }
  }
}

extension UploadError {
  /// The error for a response to bytes for an upload's own URL. `holding`: what the server has after a 403.
  init(sending request: HTTPRequest, _ response: HTTPResponse, _ holding: HoldingAfterRefusal?) {
    self.init(session: request, response)
    switch holding {
    case .unchanged: recovery = .giveUp
    case .changed: recovery = .resync
    case .unknown, .whole, nil: break
    }
  }
}
