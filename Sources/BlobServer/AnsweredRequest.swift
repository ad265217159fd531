import Blobs

/// A request that the server has answered. The response may have been cut by the client.
public struct AnsweredRequest: Sendable {
  /// When the header section had arrived, in nanoseconds since 1970.
  public let time: Int64
  /// The time from then until the response was sent.
  public let duration: Duration
  /// The client, as far as the server knows it.
  public let client: Sender
  /// Empty if the request was malformed. Clients can send any token.
  public let method: String
  /// As the client has encoded it, and without the query, which may contain secrets.
  public let path: BytePath
  /// The status of the response.
  public let status: Int
  /// Bytes of the request's body that have arrived.
  public let bytesReceived: Int64
  /// Bytes of the response's body that were sent.
  public let bytesSent: Int64
}

/// The facts about a request that its connection collects from its header section until the response was sent. They become
/// an `AnsweredRequest`.
struct RequestNotes {
  private let began: ContinuousClock.Instant
  /// The client's address; nil: it is not known, or nobody asks for it.
  private let address: String?
  /// Bytes of the body.
  var received: Int64 = 0
  /// An interim response was sent to find out whether the client is still connected.
  var hasProbed = false
  /// Set when there is a response.
  private var answer: (status: Int, bodyStart: Int64)?

  init(_ now: ContinuousClock.Instant, address: String?) { (began, self.address) = (now, address) }

  /// The status of the response; nil: the server has sent none yet.
  var status: Int? { answer?.status }

  /// `bodyStart`: the number of bytes that the connection has sent when the response's body begins.
  mutating func answer(_ status: Int, bodyStart: Int64) { answer = (status, bodyStart) }

  /// `sent`: the number of bytes that the connection has sent. nil: there was no response.
  func end(_ request: Request?, sent: Int64) -> AnsweredRequest? {
    guard let answer else { return nil }
    let duration = ContinuousClock.now - began
    let target = request.flatMap { try? RequestTarget($0.target) }
    return AnsweredRequest(
      time: wallClock() - duration.nanoseconds, duration: duration,
      client: Sender(address: address, agent: request?.headers["User-Agent"]), method: request?.method ?? "",
      path: BytePath(target?.path ?? []), status: answer.status, bytesReceived: received,
      bytesSent: max(0, sent - answer.bodyStart))
  }
}
