import BlobHTTP
import Blobs

/// An answer, before it is handed to libmicrohttpd.
struct Reply: Sendable {
  enum Body: Sendable {
    case bytes([UInt8])
    /// A range of an open file, sent without a copy.
    case file(OpenItem, Range<Int64>)
  }
  var status: Int
  var headers: HTTPHeaders
  var body: Body

  init(_ status: Int, _ headers: HTTPHeaders = [:], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// A line of text for people.
  init(_ status: Int, _ headers: HTTPHeaders = [:], text: String) {
    self.init(status, headers, body: .bytes(Array("\(text)\n".utf8)))
    self.headers["Content-Type"] = "text/plain; charset=utf-8"
    self.headers["X-Content-Type-Options"] = "nosniff"
  }

  init(_ error: ServerError, _ headers: HTTPHeaders = [:]) {
    self.init(error.status, headers, text: error.message)
  }

  /// For writing past libmicrohttpd, which cannot answer in the middle of a body; the connection is closed after it.
  var raw: [UInt8] {
    guard case .bytes(let content) = body else { preconditionFailure("only small answers are written raw") }
    var text = "HTTP/1.1 \(status) Refused\r\nConnection: close\r\nContent-Length: \(content.count)\r\n"
    for field in headers.fields { text += "\(field.name): \(field.value)\r\n" }
    return Array("\(text)\r\n".utf8) + content
  }
}

/// What a route makes of a request, or of the body that came with it.
enum Plan: Sendable {
  case reply(Reply)
  /// Take the body, if there is one; the receiver decides at its end.
  case receive(any BodyReceiver)
  /// Suspend the connection until a worker has decided.
  case later(@Sendable (_ decided: @escaping @Sendable (Plan) -> Void) -> Void)

  static func refuse(_ error: ServerError) -> Plan { .reply(Reply(error)) }
}

/// Where the bytes of one body go. Called on the connection's event thread, one call at a time, so never slow.
protocol BodyReceiver: AnyObject, Sendable {
  /// Throws to refuse the rest: what came so far stays with the receiver, which is not called again but by `cut`.
  func take(_ bytes: UnsafeRawBufferPointer) throws(ServerError)
  /// The body is complete.
  func end() -> Plan
  /// The connection broke, or the rest was refused, before the end.
  func cut()
}
