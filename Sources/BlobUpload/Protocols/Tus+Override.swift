import BlobHTTP
import Synchronization

/// Whether a host, or an intermediary, refuses PATCH and DELETE, so that both must be sent as POST. The method is then
/// in a field that only tus servers process. tus 1.0 §X-HTTP-Method-Override.
final class MethodOverride: Sendable {
  private enum Knowledge {
    case unknown
    /// An earlier run has seen that POST helps, which may no longer be true.
    case remembered
    /// A method was refused, and is sent as POST from now on. This run has not yet seen that this helps.
    case tried
    /// This run has seen that POST helps.
    case proven
    /// The POST was refused too, so the method was not the reason.
    case useless
  }
  private struct State {
    var knowledge = Knowledge.unknown
    /// A result of this run that the journal does not contain yet: whether the next run should start with POST.
    var news: Bool?
  }
  private let state = Mutex(State())

  var isOn: Bool { state.withLock { [.remembered, .tried, .proven].contains($0.knowledge) } }

  /// The result of this run since the last call. true: POST helps; false: POST is no longer needed; nil: nothing new.
  func takeNews() -> Bool? {
    state.withLock { state in
      defer { state.news = nil }
      return state.news
    }
  }

  /// The journal says that an earlier run has seen POST to help.
  func recall() { state.withLock { $0.knowledge = .remembered } }

  /// POST was seen to help.
  func turnOn() {
    state.withLock { state in
      if state.knowledge != .proven { state = State(knowledge: .proven, news: true) }
    }
  }

  /// Called when the server did not treat a POST as the method in its field. true: the method is sent directly again,
  /// since this run has never seen that POST helps.
  func fails() -> Bool {
    state.withLock { state in
      switch state.knowledge {
      case .tried: state.knowledge = .useless
      case .remembered: state.knowledge = .unknown
      case .proven: return false
      // Another upload has found this out while the request was running.
      case .unknown, .useless: break
      }
      state.news = false
      return true
    }
  }

  /// Called when `request` was refused, apparently for its method. true: the next request uses the other form.
  func changes(after request: HTTPRequest) -> Bool {
    state.withLock { state in
      switch (state.knowledge, request.isOverridden) {
      case (.useless, _), (.proven, true): return false
      case (.tried, true):
        state.knowledge = .useless
        return false
      // The host has changed since the earlier run. If it also refuses the direct method, it refuses the upload.
      case (.remembered, true): state = State(knowledge: .unknown, news: false)
      // Another upload has found this out while the request was running.
      case (.unknown, true), (.proven, false): break
      case (_, false): state.knowledge = .tried
      }
      return true
    }
  }
}

extension HTTPRequest {
  static let override = "X-HTTP-Method-Override"

  var isOverridden: Bool { method == "POST" && headers[Self.override] != nil }

  /// The same request as a POST.
  fileprivate var overridden: HTTPRequest {
    var request = self
    request.headers[Self.override] = method
    request.method = "POST"
    return request
  }

  /// The form that gets through to a host: PATCH or DELETE directly, or as POST.
  func through(_ methods: MethodOverride) -> HTTPRequest { methods.isOn ? overridden : self }
}

extension Tus {
  /// Whether the method was refused, and the other form may get through.
  ///
  /// Some firewalls respond 403 to methods that they do not know. Servers also use 403 for an upload that no longer
  /// exists or is complete, so a 403 counts only if the server has as many bytes as before. With a chunked body, 501
  /// may refer to the chunks.
  func isRefused(
    _ request: HTTPRequest, hasLength: Bool, _ holding: HoldingAfterRefusal?, _ response: HTTPResponse,
    _ with: UploadContext
  ) -> Bool {
    switch response.status {
    case 405: break
    case 501: if !hasLength { return false }
    case 403: if holding?.isUnchanged != true { return false }
    default: return false
    }
    // The server does not support such a POST, which says nothing about PATCH: an intermediary may have refused that.
    if request.isOverridden, response.status != 403 { return with.methods.fails() }
    return with.methods.changes(after: request)
  }

  /// Whether a server without support for the field has misunderstood a POST that stands for a PATCH. It then responds
  /// that the resource does not exist, or that the request is invalid. PATCH itself may get through.
  func isMisunderstood(_ request: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext) -> Bool {
    guard request.isOverridden, [400, 404, 410, 415, 422].contains(response.status) else { return false }
    return with.methods.fails()
  }

  /// Throws if a POST that stands for a PATCH was misunderstood, for example as the creation of another upload. The
  /// response to a PATCH is 204. tus 1.0 §Core Protocol, PATCH.
  func checkOverride(
    _ request: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext
  ) throws(UploadError) {
    guard request.isOverridden, response.isSuccess else { return }
    if response.status == 204 { return with.methods.turnOn() }
    _ = with.methods.fails()
    throw UploadError(
      .giveUp, .destination,
      "\(request.method) \(request.url): answered \(response.status) instead of 204: the server does not take a POST for a PATCH "
        + "(X-HTTP-Method-Override), and something on the way lets no PATCH through. put+ before the URL needs none",
      status: response.status)
  }

  /// Sends DELETE for an upload, in the form that gets through, and returns the response. A server that cannot delete
  /// refuses both forms.
  func delete(
    _ url: HTTPURL, _ with: UploadContext
  ) async throws(UploadError) -> (request: HTTPRequest, response: HTTPResponse) {
    let plain = HTTPRequest("DELETE", url, ["Tus-Resumable": Self.version])
    let request = plain.through(with.methods)
    let response = try await with.send(request)
    if request.isDeleted(response) || !(response.isSuccess || [403, 405, 501].contains(response.status)) {
      return (request, response)
    }
    let other = request.isOverridden ? plain : plain.overridden
    // After a success of DELETE, the server may still be deleting: no second request is sent.
    if response.isSuccess, other.isOverridden { return (request, response) }
    let answer = try await with.send(other)
    guard other.isDeleted(answer) else { return (request, response) }
    if other.isOverridden { with.methods.turnOn() }
    return (other, answer)
  }

  /// DELETE for one upload, which may no longer exist. tus 1.0 §Termination.
  func abort(_ url: HTTPURL, _ with: UploadContext) async throws(UploadError) {
    let (request, response) = try await delete(url, with)
    if request.isDeleted(response) { return }
    let status = response.status
    if [403, 404, 410].contains(status), await isGone(UploadSession(state: ["url": url.text]), with) { return }
    var error = UploadError(deleting: request, response)
    if terminates == false, [403, 405, 501].contains(status) {
      error.message = "\(request.method) \(request.url): this server deletes no uploads (it offers no tus termination)"
      error.cause = KeepsUploads()
    }
    throw error
  }
}

extension HTTPRequest {
  /// Whether `response` says that the upload is deleted. A server without support for the override field may respond to
  /// a POST with any other success, or with 404.
  fileprivate func isDeleted(_ response: HTTPResponse) -> Bool {
    isOverridden ? response.status == 204 : response.saysDeleted
  }
}

extension HTTPResponse {
  /// tusd aborts a PATCH when another request locks the same upload, and keeps the bytes received so far.
  var isInterruption: Bool {
    guard status == 400 else { return false }
    let text = String(decoding: body.prefix(1000), as: UTF8.self)
    return text.contains("ERR_UPLOAD_INTERRUPTED") || text.contains("upload has been interrupted by another request")
  }
}
