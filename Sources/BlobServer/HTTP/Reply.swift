import BlobHTTP
import Blobs

/// The response to a request.
struct Reply: Sendable {
  enum Body: Sendable {
    case bytes([UInt8])
    /// A range of an open file, sent without copying.
    case file(OpenItem, Range<Int64>)
    /// Made while it is sent.
    case archive(Archive.Part)
  }
  var status: Int
  var headers: HTTPHeaders
  var body: Body
  /// Released once the response has been sent.
  var permits: [Allowance.Permit] = []

  init(_ status: Int, _ headers: HTTPHeaders = [:], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// The size of the in-memory body in bytes.
  var size: Int {
    switch body {
    case .bytes(let bytes): bytes.count
    case .file, .archive: 0
    }
  }

  /// Whether its body has bytes of published files.
  var isOfFiles: Bool { if case .bytes = body { false } else { true } }

  /// A response with one line of plain text.
  init(_ status: Int, _ headers: HTTPHeaders = [:], text: String) {
    self.init(status, headers, body: .bytes(Array("\(text)\n".utf8)))
    self.headers["Content-Type"] = "text/plain; charset=utf-8"
    self.headers["X-Content-Type-Options"] = "nosniff"
  }

  init(_ error: ServerError, _ headers: HTTPHeaders = [:]) {
    self.init(error.status, headers, text: error.message)
    for field in error.headers.fields { self.headers[field.name] = field.value }
    self.headers[ServerError.kindField] = error.kind?.rawValue
    guard let problem = error.problem else { return }
    self.headers["Content-Type"] = "application/problem+json"
    body = .bytes(Self.problem(problem, error.message))
  }

  /// Replaces the path of the served folder in the text of an error: clients learn nothing of the computer beyond the folder.
  mutating func replace(_ path: [UInt8], with text: String) {
    guard case .bytes(let bytes) = body, path.count > 1, bytes.count < 10_000 else { return }
    body = .bytes(bytes.replacing(path, with: Array(text.utf8)))
  }

  /// `members`: further members after the title, as JSON. RFC 9457.
  static func problem(_ type: String, _ title: String, members: String = "") -> [UInt8] {
    let type = JSONText.quoted("https://iana.org/assignments/http-problem-types#\(type)")
    return Array("{\"type\":\(type),\"title\":\(JSONText.quoted(title))\(members)}\n".utf8)
  }

  /// The length of the body in bytes, whether or not it is sent.
  var length: Int64 {
    switch body {
    case .bytes(let bytes): Int64(bytes.count)
    case .file(_, let range): range.upperBound - range.lowerBound
    case .archive(let part): part.range.upperBound - part.range.lowerBound
    }
  }

  /// Whether the body is sent. It is not sent in a response to HEAD, and never with these status codes, whatever the
  /// header fields say. RFC 9110 §9.3.2, §15.3.5, §15.4.5.
  func hasBody(to method: String) -> Bool { method != "HEAD" && status != 204 && status != 304 }

  /// The reply while the writer has its in-memory body, which must not be in memory twice.
  var withoutBytes: Reply {
    var reply = self
    if !isOfFiles { reply.body = .bytes([]) }
    return reply
  }

  /// The header section, followed by the body if that is in memory and is sent. `date`: the value of `Date`.
  func text(to method: String, date: String?, keepsConnection: Bool) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(512 + size)
    text += "HTTP/1.1 \(status) \(Self.reasons[status] ?? "")\r\n".utf8
    if let date { text.addField("Date", date) }
    // A 304 without the body that a 200 would have has no length to tell. RFC 9110 §8.6.
    if status != 204, status != 304 || isOfFiles { text.addField("Content-Length", String(length)) }
    if !keepsConnection { text.addField("Connection", "close") }
    for field in headers.fields { text.addField(field.name, field.value) }
    text += "\r\n".utf8
    if case .bytes(let bytes) = body, hasBody(to: method) { text += bytes }
    return text
  }

  private static let reasons = [
    200: "OK", 201: "Created", 204: "No Content", 206: "Partial Content", 301: "Moved Permanently", 303: "See Other",
    304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed",
    413: "Content Too Large", 414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable",
    421: "Misdirected Request", 431: "Request Header Fields Too Large", 460: "Checksum Mismatch",
    500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable",
    505: "HTTP Version Not Supported", 507: "Insufficient Storage",
  ]
}

extension [UInt8] {
  /// Replaces control characters in the value, which could end the line, with spaces.
  fileprivate mutating func addField(_ name: String, _ value: String) {
    self += name.utf8
    self += ": ".utf8
    let start = count
    self += value.utf8
    for index in start..<count where self[index] < 32 && self[index] != 9 || self[index] == 127 { self[index] = 32 }
    self += "\r\n".utf8
  }
}

/// A route's decision about a request or its body.
enum Plan: Sendable {
  case reply(Reply)
  /// Receive the body, if there is one; the receiver decides at its end.
  case receive(any BodyReceiver)
  /// Suspend the connection until a worker has decided.
  case later(@Sendable (_ decided: @escaping @Sendable (Plan) -> Void) -> Void)

  static func refuse(_ error: ServerError) -> Plan { .reply(Reply(error)) }
}

/// Receives the bytes of one body. Called on the connection's event thread, one call at a time, so it must not block.
protocol BodyReceiver: AnyObject, Sendable {
  /// Throws to refuse the rest. The receiver keeps the bytes it has accepted; only `cut` is called afterwards.
  func take(_ piece: BodyPiece) throws(ServerError)
  /// Whether the receiver accepts bytes in a pipe, because it need not examine them.
  var takesPipes: Bool { get }
  /// The body is complete. `trailers` are the fields of its trailer section.
  func end(_ trailers: HTTPHeaders) -> Plan
  /// The connection broke, or the rest was refused, before the end of the body.
  func cut()
}
