import BlobHTTP

/// A request whose head has come, as routes see it.
final class Request: Sendable {
  let head: RequestHead
  private weak let connection: Connection?

  init(_ head: RequestHead, _ connection: Connection) {
    self.head = head
    self.connection = connection
  }

  var method: String { head.method }
  var target: [UInt8] { head.target }
  var headers: HTTPHeaders { head.headers }
  var isHTTP11: Bool { head.isHTTP11 }
  /// Bytes of the body; nil: the end will tell.
  var contentLength: Int64? { head.contentLength }
  var hasBody: Bool { contentLength != 0 }
  /// The client waits for leave to send the body. RFC 9110 §10.1.1.
  var expectsLeave: Bool { isHTTP11 && headers["Expect"]?.isSameField("100-continue") == true }
  /// Another request may follow on the connection. RFC 9112 §9.3.
  var keepsConnection: Bool { isHTTP11 && !headers.list("Connection").contains { $0.isSameField("close") } }

  /// The client has closed the connection. While a worker decides; that worker calls.
  var clientHasGone: Bool { connection?.clientHasGone(knowsInterim: isHTTP11) ?? true }

  /// Sends an interim answer, while the answer is planned. false: it is empty, or the client knows of none, as with HTTP/1.0.
  /// RFC 9110 §15.2.
  func inform(_ interim: [UInt8]) -> Bool {
    guard isHTTP11, !interim.isEmpty, let connection else { return false }
    connection.sendInterim(interim)
    return true
  }

  /// As `inform`, in the middle of the body, on the event thread. false: also where it cannot be sent at once.
  func inform(orSkip interim: [UInt8]) -> Bool { connection?.isQuiet == true && inform(interim) }
}
