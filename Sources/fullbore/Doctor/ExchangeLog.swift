import BlobHTTP
import Blobs
import Synchronization

/// Sends requests by another transport, and records what was answered.
final class ExchangeLog: Transport {
  struct Entry: Sendable {
    let request: HTTPRequest
    let response: HTTPResponse
  }

  private struct State {
    var entries: [Entry] = []
    var interim: [HTTPHead] = []
  }
  private let transport: any Transport
  private let state = Mutex(State())
  /// A server can send any number of interim responses.
  private static let most = 1000

  init(_ transport: any Transport) { self.transport = transport }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    var on = on
    let forward = on.interim
    on.interim = { [self] head in
      state.withLock { if $0.interim.count < Self.most { $0.interim.append(head) } }
      forward(head)
    }
    let response = try await transport.send(request, body: body, on)
    state.withLock {
      if $0.entries.count < Self.most { $0.entries.append(Entry(request: request, response: response)) }
    }
    return response
  }

  var entries: [Entry] { state.withLock { $0.entries } }
  var interim: [HTTPHead] { state.withLock { $0.interim } }

  /// The last response to a request with this method.
  func last(_ method: String) -> Entry? { entries.last { $0.request.method == method } }
}
