import BlobHTTP
import Blobs
import CMicrohttpd
import Platform

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
  /// Given back once the client has the answer.
  var permits: [Allowance.Permit] = []

  init(_ status: Int, _ headers: HTTPHeaders = [:], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Bytes of the body that are in memory.
  var size: Int {
    switch body {
    case .bytes(let bytes): bytes.count
    case .file: 0
    }
  }

  /// A line of text for people.
  init(_ status: Int, _ headers: HTTPHeaders = [:], text: String) {
    self.init(status, headers, body: .bytes(Array("\(text)\n".utf8)))
    self.headers["Content-Type"] = "text/plain; charset=utf-8"
    self.headers["X-Content-Type-Options"] = "nosniff"
  }

  init(_ error: ServerError, _ headers: HTTPHeaders = [:]) {
    self.init(error.status, headers, text: error.message)
    for field in error.headers.fields { self.headers[field.name] = field.value }
    guard let problem = error.problem else { return }
    self.headers["Content-Type"] = "application/problem+json"
    body = .bytes(Self.problem(problem, error.message))
  }

  /// `members`: what follows the title, as JSON. RFC 9457.
  static func problem(_ type: String, _ title: String, members: String = "") -> [UInt8] {
    let type = JSONText.quoted("https://iana.org/assignments/http-problem-types#\(type)")
    return Array("{\"type\":\(type),\"title\":\(JSONText.quoted(title))\(members)}\n".utf8)
  }

  /// What libmicrohttpd would send. The answer to HEAD has no content, whatever it says of it. RFC 9110 §9.3.2.
  func text(to method: String, keepsConnection: Bool) -> [UInt8] {
    guard case .bytes(let content) = body else { preconditionFailure("only small answers are written so") }
    var head = "HTTP/1.1 \(status) \(String(cString: MHD_get_reason_phrase_for(UInt32(status))))\r\n"
    if let date = HTTPDate.text(wallClock()) { head += "Date: \(date)\r\n" }
    if status != 204 { head += "Content-Length: \(content.count)\r\n" }
    if !keepsConnection { head += "Connection: close\r\n" }
    for field in headers.fields { head += "\(field.name): \(field.value)\r\n" }
    return Array("\(head)\r\n".utf8) + (method == "HEAD" ? [] : content)
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
  func take(_ piece: BodyPiece) throws(ServerError)
  /// Bytes may come in a pipe: it need not look at them.
  var takesPipes: Bool { get }
  /// The body is complete. `trailers` came after the last of its chunks.
  func end(_ trailers: HTTPHeaders) -> Plan
  /// The connection broke, or the rest was refused, before the end.
  func cut()
}
