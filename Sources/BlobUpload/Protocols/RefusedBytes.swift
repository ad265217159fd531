import BlobHTTP

/// What a server holds of an upload after it has answered bytes for it with 403.
enum HoldingAfterRefusal {
  /// The server does not know the upload, or gave no answer to the question.
  case unknown
  /// The server holds as many bytes as before: it refuses these bytes, or the method that brought them.
  case unchanged
  /// The server holds another number of bytes: it has gone on with an earlier request, whose answer was lost.
  case changed
  /// The server holds all bytes. Servers answer 403 to bytes for an upload that is complete already.
  case whole(UploadResult)

  var isUnchanged: Bool { if case .unchanged = self { true } else { false } }
}

extension UploadProtocol {
  /// Asks what the server holds, where `response` to bytes from `offset` on is a 403; nil: it is not.
  func holding(
    of session: UploadSession, from offset: Int64, after response: HTTPResponse, _ with: UploadContext
  ) async -> HoldingAfterRefusal? {
    guard response.status == 403 else { return nil }
    // An upload that cannot be asked about counts as gone.
    switch try? await held(by: session, with) {
    case .upTo(let held, _): return held == offset ? .unchanged : .changed
    case .finished(let result): return .whole(result)
    case .parts, nil: return .unknown
    }
  }
}

extension UploadError {
  /// The answer to bytes for an upload's own URL. `holding`: what the server holds after a 403.
  init(sending request: HTTPRequest, _ response: HTTPResponse, _ holding: HoldingAfterRefusal?) {
    self.init(session: request, response)
    switch holding {
    case .unchanged: recovery = .giveUp
    case .changed: recovery = .resync
    case .unknown, .whole, nil: break
    }
  }
}
