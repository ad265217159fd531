import BlobHTTP
import BlobTesting
import Blobs
import TestSupport

/// A proxy on 127.0.0.1 that takes a request completely, and delivers it to the server only later. All other requests pass.
final class HoldingProxy: Sendable {
  private struct State: Sendable {
    var isHolding = false
    var isReleased = false
    var status: Int?
    var passed: [String] = []
  }
  private let state: Monitor<State>
  private let peer: HTTPPeer

  var port: Int { peer.port }
  /// A request has arrived and is held.
  var isHolding: Bool { state.update(waking: .none) { $0.isHolding } }
  /// The requests that were passed on at once, in order.
  var passed: [String] { state.update(waking: .none) { $0.passed } }

  /// Holds the first request for which `isWanted` returns true.
  init(before port: Int, holding isWanted: @escaping @Sendable (HTTPPeer.Request) -> Bool) {
    let state = Monitor(State())
    self.state = state
    peer = HTTPPeer { request in
      let isHeld = state.update { state in
        if state.isHolding || !isWanted(request) {
          state.passed.append("\(request.method) \(request.path)")
          return false
        }
        state.isHolding = true
        return true
      }
      if !isHeld { return Self.forward(request, to: port) }
      _ = state.wait { $0.isReleased ? true : nil }
      let reply = Self.forward(request, to: port)
      state.update { $0.status = reply?.status ?? 0 }
      return nil
    }
  }

  deinit { release() }

  /// The held request goes to the server now. Returns the status of its response.
  func deliver() async throws -> Int {
    release()
    return try await until("the late request is answered") { state.update(waking: .none) { $0.status } }
  }

  private func release() { state.update { $0.isReleased = true } }

  private static func forward(_ request: HTTPPeer.Request, to port: Int) -> HTTPPeer.Reply? {
    let left = ["content-length", "transfer-encoding", "connection", "expect"]
    let headers = request.headers.fields.filter { !left.contains($0.name.lowercased()) }.map { ($0.name, $0.value) }
    let hasBody = !request.body.isEmpty || ["PUT", "POST", "PATCH"].contains(request.method)
    guard let client = try? RawHTTPClient(port: UInt16(port)),
      let answer = try? client.ask(
        request.method, request.path + (request.query.map { "?\($0)" } ?? ""), headers,
        body: hasBody ? request.body : nil)
    else { return nil }
    var reply = HTTPPeer.Reply(answer.status, answer.headers, answer.body)
    if request.method == "HEAD" {
      reply.body = [UInt8](repeating: 0, count: Int(answer.headers.bytes("Content-Length") ?? 0))
    }
    for name in left { reply.headers[name] = nil }
    return reply
  }
}
