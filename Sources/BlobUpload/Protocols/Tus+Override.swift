import BlobHTTP
import Synchronization

/// Whether a host, or something on the way to it, refuses PATCH and DELETE, so that both must go as POST, with the method
/// in a field that only a tus server heeds. tus 1.0 §X-HTTP-Method-Override.
final class MethodOverride: Sendable {
  private struct State {
    var isOn = false
    /// By what an earlier run has kept, which need not be true any more.
    var isHearsay = false
  }
  private let state = Mutex(State())

  var isOn: Bool { state.withLock { $0.isOn } }

  /// An earlier run has found it so.
  func recall() { state.withLock { ($0.isOn, $0.isHearsay) = (true, true) } }

  /// It was seen to help.
  func turnOn() { state.withLock { ($0.isOn, $0.isHearsay) = (true, false) } }

  /// `request` was refused for its method. true: it goes in another way now.
  func changes(after request: HTTPRequest) -> Bool {
    state.withLock { state in
      if request.isOverridden {
        // What was true a week ago; who refuses this too refuses us.
        if state.isHearsay { state = State() }
        return !state.isOn
      }
      state = State(isOn: true, isHearsay: false)
      return true
    }
  }
}

extension HTTPRequest {
  private static let override = "X-HTTP-Method-Override"

  fileprivate var isOverridden: Bool { method == "POST" && headers[Self.override] != nil }

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
  /// Some firewalls say 403 to methods that they do not know. So does a server whose upload is gone: it is asked. Who is
  /// sent chunks may mean them by 501.
  func isRefused(
    _ request: HTTPRequest, hasLength: Bool, _ response: HTTPResponse, _ session: UploadSession, _ with: UploadContext
  ) async -> Bool {
    switch response.status {
    case 405: break
    case 501: if !hasLength { return false }
    case 403:
      if request.isOverridden { return false }
      // An error says that it is gone, or nothing.
      guard (try? await held(by: session, with)) != nil else { return false }
    default: return false
    }
    return with.methods.changes(after: request)
  }

  /// DELETE of an upload, in the way that gets through. A server that cannot delete refuses both.
  func delete(_ url: HTTPURL, _ with: UploadContext) async throws(UploadError) -> HTTPResponse {
    let request = HTTPRequest("DELETE", url, ["Tus-Resumable": Self.version])
    let response = try await with.send(request.through(with.methods))
    guard [403, 405, 501].contains(response.status) else { return response }
    let other = with.methods.isOn ? request : request.overridden
    let answer = try await with.send(other)
    guard answer.isSuccess else { return response }
    if other.isOverridden { with.methods.turnOn() }
    return answer
  }
}
