import BlobHTTP
import Synchronization

/// Whether a host, or something on the way to it, refuses PATCH and DELETE, so that both must go as POST, with the method
/// in a field that only a tus server heeds. tus 1.0 §X-HTTP-Method-Override.
final class MethodOverride: Sendable {
  private enum State {
    case unknown
    /// An earlier run has found it so, which need not be true any more.
    case hearsay
    /// A method was refused, and goes in a POST from now on; it was not seen yet that this helps.
    case tried
    case proven
    /// The POST was refused too, so that it was not the method.
    case useless
  }
  private let state = Mutex(State.unknown)
  /// Whether the next run should know that POST is needed; nil: nothing was found out that the journal does not have.
  private let news = Mutex<Bool?>(nil)

  var isOn: Bool { state.withLock { [.hearsay, .tried, .proven].contains($0) } }

  /// What was found out since this was asked last: whether POST was seen to help, or is no longer needed.
  func takeNews() -> Bool? {
    news.withLock { news in
      defer { news = nil }
      return news
    }
  }

  /// An earlier run has found it so.
  func recall() { state.withLock { $0 = .hearsay } }

  /// It was seen to help.
  func turnOn() {
    let isNew = state.withLock { state in
      defer { state = .proven }
      return state != .proven
    }
    if isNew { news.withLock { $0 = true } }
  }

  /// A POST that stands for another method was not taken for it. true: the method goes by itself again, for nobody has seen
  /// in this run that the POST helps.
  func fails() -> Bool {
    let isUnproven = state.withLock { state in
      switch state {
      case .tried: state = .useless
      case .hearsay: state = .unknown
      case .unknown, .proven, .useless: return false
      }
      return true
    }
    if isUnproven { news.withLock { $0 = false } }
    return isUnproven
  }

  /// `request` was refused for its method, as it seems. true: it goes in another way now.
  func changes(after request: HTTPRequest) -> Bool {
    state.withLock { state in
      switch (state, request.isOverridden) {
      case (.useless, _), (.proven, true): return false
      case (.tried, true):
        state = .useless
        return false
      // What was true a week ago; whoever refuses this too refuses us.
      case (.hearsay, true):
        state = .unknown
        news.withLock { $0 = false }
      // Another upload has found that out meanwhile.
      case (.unknown, true), (.proven, false): break
      case (_, false): state = .tried
      }
      return true
    }
  }
}

extension HTTPRequest {
  private static let override = "X-HTTP-Method-Override"

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
