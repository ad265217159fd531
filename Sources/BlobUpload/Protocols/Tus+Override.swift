import BlobHTTP
import Synchronization

/// Whether a host, or something on the way to it, refuses PATCH and DELETE, so that both must go as POST, with the method
/// in a field that only a tus server heeds. tus 1.0 §X-HTTP-Method-Override.
final class MethodOverride: Sendable {
  private enum Knowledge {
    case unknown
    /// An earlier run has seen that POST helps, which need not be true any more.
    case remembered
    /// A method was refused, and goes in a POST from now on. This run has not yet seen that this helps.
    case tried
    /// This run has seen that POST helps.
    case proven
    /// The POST was refused too, so the method was not the reason.
    case useless
  }
  private struct State {
    var knowledge = Knowledge.unknown
    /// What this run has found out and the journal does not have: whether the next run should begin with POST.
    var news: Bool?
  }
  private let state = Mutex(State())

  var isOn: Bool { state.withLock { [.remembered, .tried, .proven].contains($0.knowledge) } }

  /// What this run has found out since the last call: true: POST was seen to help; false: POST is no longer needed; nil:
  /// nothing.
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

  /// A POST that stands for another method was not taken for it. true: the method goes by itself again, since this run has
  /// never seen that the POST helps.
  func fails() -> Bool {
    state.withLock { state in
      switch state.knowledge {
      case .tried: state.knowledge = .useless
      case .remembered: state.knowledge = .unknown
      case .proven: return false
      // Another upload has found that out while this request was under way.
      case .unknown, .useless: break
      }
      state.news = false
      return true
    }
  }

  /// `request` was refused, and its method seems to be the reason. true: the same goes in another way now.
  func changes(after request: HTTPRequest) -> Bool {
    state.withLock { state in
      switch (state.knowledge, request.isOverridden) {
      case (.useless, _), (.proven, true): return false
      case (.tried, true):
        state.knowledge = .useless
        return false
      // The host has changed since the earlier run. If it refuses the method by itself too, it refuses the upload.
      case (.remembered, true): state = State(knowledge: .unknown, news: false)
      // Another upload has found that out while this request was under way.
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

  /// The same, in a POST.
  fileprivate var overridden: HTTPRequest {
    var request = self
    request.headers[Self.override] = method
    request.method = "POST"
    return request
  }

  /// As it gets through to a host: PATCH or DELETE by itself, or in a POST.
  func through(_ methods: MethodOverride) -> HTTPRequest { methods.isOn ? overridden : self }
}

extension Tus {
  /// Whether it is the method that was refused, and the same may get through in another way.
  ///
  /// Some firewalls say 403 to methods that they do not know. A server says it of an upload that is gone or complete too, so
  /// that a 403 counts only where the server holds what it held before. A server that is sent chunks may mean them by 501.
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
    // The server knows no such POST, which says nothing of the PATCH: that may have been refused in passing.
    if request.isOverridden, response.status != 403 { return with.methods.fails() }
    return with.methods.changes(after: request)
  }

  /// Whether a POST that stands for a PATCH was taken for something else, by a server that knows nothing of the field: it
  /// says then that there is no such place, or that it does not understand. Then the PATCH may get through by itself.
  func isMisunderstood(_ request: HTTPRequest, _ response: HTTPResponse, _ with: UploadContext) -> Bool {
    guard request.isOverridden, [400, 404, 410, 415, 422].contains(response.status) else { return false }
    return with.methods.fails()
  }

  /// Throws where a POST that stands for a PATCH was taken for something else, such as the creation of another upload. A PATCH
  /// is answered with 204. tus 1.0 §Core Protocol, PATCH.
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

  /// DELETE of an upload, in the way that gets through, and the answer. A server that cannot delete refuses both.
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
    // What the server has begun by DELETE is not asked for a second time.
    if response.isSuccess, other.isOverridden { return (request, response) }
    let answer = try await with.send(other)
    guard other.isDeleted(answer) else { return (request, response) }
    if other.isOverridden { with.methods.turnOn() }
    return (other, answer)
  }

  /// DELETE of one upload, which may be gone already. tus 1.0 §Termination.
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
  /// Whether `response` says that the upload is deleted. A server that knows nothing of overridden methods may answer a POST
  /// with any other success, and with 404.
  fileprivate func isDeleted(_ response: HTTPResponse) -> Bool {
    isOverridden ? response.status == 204 : response.saysDeleted
  }
}
