import BlobHTTP
import Blobs

/// A body that is sent after the request's head.
protocol RequestBody: AnyObject {
  /// Body bytes that the connection has accepted, without framing.
  var sent: Int64 { get }
  /// Whether the connection has accepted the whole body, including the last chunk and the trailers of a chunked body.
  var isComplete: Bool { get }
  /// Whether some bytes of the source were already consumed. Then a retry over another connection needs a new
  /// `RequestBody`.
  var hasBegun: Bool { get }
  /// Whether the next `send` reads from the source.
  var awaitsSource: Bool { get }
  /// Called before the head is sent over this connection.
  func begin(on connection: Connection)
  /// Hands the connection as much as it accepts now, up to a few MiB. Blocks only while the source blocks.
  func send(_ cancel: Cancellation) throws(BlobError) -> SendOutcome
}

/// Result of an attempt to send.
enum SendOutcome {
  /// The connection may accept more at once.
  case moved
  /// The connection accepts nothing more for now.
  case blocked
  /// Received bytes must be read before more can be sent.
  case waiting
  /// The rate limit lets no byte pass yet.
  case limited
  case broken
}

/// Decides when to look for an early response while the connection accepts the body without pause.
struct AnswerCheck {
  private let start: Int64
  private let began = SuspendingClock.now

  init(after body: any RequestBody) { start = body.sent }

  func isDue(for body: any RequestBody) -> Bool {
    body.sent - start >= 4 << 20 || SuspendingClock.now - began > .milliseconds(20)
  }
}
