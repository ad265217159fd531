import BlobHTTP
import Blobs
import Synchronization

/// A transport that wraps another one and fails by schedule.
public final class FaultyTransport: Transport {
  /// How one request fails.
  public enum Fault: Sendable {
    /// The request is passed on unchanged.
    case none
    /// Fails before anything is sent.
    case before(TransportError.Code)
    /// Sends the request and drops the response.
    case loseAnswer
    /// Returns this response without sending the request.
    case answer(HTTPResponse)
    /// Sends the request once the closure returns true, also if the task was cancelled meanwhile.
    case wait(until: @Sendable () -> Bool)
  }

  private let transport: any Transport
  private let schedule: @Sendable (Int, HTTPRequest) -> Fault
  private let count = Atomic(0)

  /// `schedule` is called for each request with its number, counted from 0.
  public init(_ transport: any Transport, _ schedule: @escaping @Sendable (Int, HTTPRequest) -> Fault) {
    self.transport = transport
    self.schedule = schedule
  }

  /// The nth request gets the nth fault; requests after the last fault get none.
  public convenience init(_ transport: any Transport, _ faults: [Fault]) {
    self.init(transport) { number, _ in faults.indices.contains(number) ? faults[number] : .none }
  }

  /// Requests so far.
  public var requests: Int { count.load(ordering: .relaxed) }

  public func send(
    _ request: HTTPRequest, body: BlobSlice?, _ on: Exchange
  ) async throws(TransportError) -> HTTPResponse {
    let number = count.add(1, ordering: .relaxed).oldValue
    switch schedule(number, request) {
    case .none: return try await transport.send(request, body: body, on)
    case .answer(let response): return response
    case .wait(let isOver):
      // The sleep of a cancelled task would return at once.
      while !isOver() { await Task { try? await Task.sleep(for: .milliseconds(2)) }.value }
      return try await transport.send(request, body: body, on)
    case .before(let code):
      throw TransportError(code, "\(request.method) \(request.url): failed by schedule before it was sent")
    case .loseAnswer:
      _ = try await transport.send(request, body: body, on)
      throw TransportError(.broken, "\(request.method) \(request.url): the answer was lost by schedule")
    }
  }
}
