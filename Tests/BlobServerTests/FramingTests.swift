import Testing

@testable import BlobServer

/// Requests whose framing two recipients could interpret differently. RFC 9112 §2.2, §5, §6, §11.2.
struct FramingTests {
  struct Case: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var head: String
    var status: Int

    init(_ name: String, _ head: String, _ status: Int = 400) {
      (testDescription, self.head, self.status) = (name, head, status)
    }
  }

  private static let put = "PUT /x HTTP/1.1\r\nHost: localhost\r\n"
  private static let get = "GET / HTTP/1.1\r\nHost: localhost\r\n"
  private static let chunks = "3\r\nabc\r\n0\r\n\r\n"

  static let ambiguous = [
    Case("chunks and a length", put + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + chunks),
    Case("a length and chunks", put + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks),
    Case("two lengths", put + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
    Case("one length twice", put + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
    Case("a list of lengths", put + "Content-Length: 3, 3\r\n\r\nabc"),
    Case("a length with a sign", put + "Content-Length: +3\r\n\r\nabc"),
    Case("a negative length", put + "Content-Length: -3\r\n\r\nabc"),
    Case("a hexadecimal length", put + "Content-Length: 0x3\r\n\r\nabc"),
    Case("an empty length", put + "Content-Length:\r\n\r\nabc"),
    Case("a blank before the colon of chunks", put + "Transfer-Encoding : chunked\r\n\r\n" + chunks),
    Case("a blank before the colon of a length", put + "Content-Length : 3\r\n\r\nabc"),
    Case("a tab before a colon", put + "X\t: 1\r\nContent-Length: 3\r\n\r\nabc"),
    Case("chunks twice", put + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks),
    Case("chunks and another coding", put + "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n" + chunks),
    Case("chunks with a blank after them", put + "Transfer-Encoding: chunked \r\n\r\n" + chunks),
    Case("an empty coding", put + "Transfer-Encoding:\r\n\r\n" + chunks),
    Case("chunks in HTTP/1.0", "PUT /x HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks),
    Case("a bare LF after the request line", "GET / HTTP/1.1\nHost: localhost\r\n\r\n"),
    Case("a bare LF after a field", "GET / HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n"),
    Case("bare LFs at the end", "GET / HTTP/1.1\r\nHost: localhost\n\n"),
    Case("a bare LF as the end", "GET / HTTP/1.1\r\nHost: localhost\r\n\n"),
    Case("a bare CR in a value", get + "X: 1\rContent-Length: 3\r\n\r\n"),
    Case("a bare CR at the end of a value", get + "X: 1\r\r\n\r\n"),
    Case("a NUL in a value", get + "X: 1\0 2\r\n\r\n"),
    Case("a NUL in a name", get + "X\0Y: 1\r\n\r\n"),
    Case("a line that begins with a NUL", get + "\0X: 1\r\nY: 2\r\n\r\n"),
    Case("a NUL in the target", "GET /\0x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    Case("a folded field", get + "X: 1\r\n 2\r\n\r\n"),
    Case("a folded field that hides a length", put + "Content-Length: 3\r\n -X: 1\r\n\r\nabc"),
    Case("a blank before the first field", "GET / HTTP/1.1\r\n X: 1\r\nHost: localhost\r\n\r\n"),
    Case("a field without a name", get + ": 1\r\n\r\n"),
    Case("a name that is no token", get + "a(b): 1\r\n\r\n"),
    Case("a line without a colon", get + "nonsense\r\n\r\n"),
    Case("a control character in a value", get + "X: \u{1}\r\n\r\n"),
    Case("no length in HTTP/1.0", "PUT /x HTTP/1.0\r\nHost: localhost\r\n\r\nabc", 411),
    Case("a form without a length in HTTP/1.0", "POST / HTTP/1.0\r\nHost: localhost\r\n\r\nabc", 411),
  ]

  /// The bytes that follow on the connection must not be interpreted as a request.
  @Test(arguments: ambiguous) func isRefusedAndTheConnectionClosed(_ request: Case) throws {
    let server = try TestServer()
    let client = try server.client()
    let next = "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"
    try? client.send(Array((request.head + next).utf8))
    let text = String(decoding: client.readToEnd(), as: UTF8.self)
    #expect(text.hasPrefix("HTTP/1.") && text.dropFirst(8).hasPrefix(" \(request.status) "), "\(text)")
    #expect(!text.contains(" 404 "), "\(text)")
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  static let plain = [
    Case("blanks around a value", get + "X: \t 1 \t\r\nY:2\r\nZ:\r\n\r\n", 200),
    Case("an empty line before the request", "\r\n" + get + "\r\n", 200),
    Case("bytes above ASCII in a value", get + "X: \u{e9}\u{301}\r\n\r\n", 200),
    Case("every character of a token", get + "!#$%&'*+-.^_`|~09azAZ: 1\r\n\r\n", 200),
    Case("chunks in capital letters", put + "TRANSFER-ENCODING: CHUNKED\r\n\r\n" + chunks, 201),
    Case("a chunk extension", put + "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n", 201),
    Case("a length of nothing", put + "Content-Length: 0\r\n\r\n", 201),
    Case("a length with zeros before it", put + "Content-Length: 0003\r\n\r\nabc", 201),
    Case("HTTP/1.0 with a length", "PUT /x HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", 201),
    Case("HTTP/1.0 without a body", "GET / HTTP/1.0\r\n\r\n", 200),
  ]

  @Test(arguments: plain) func validRequestsAreAccepted(_ request: Case) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.send(Array(request.head.utf8))
    #expect(try client.answer().status == request.status)
  }

  /// A head may arrive in pieces over a slow link, and the next head directly after a body.
  @Test func aHeadMayArriveInPieces() throws {
    let server = try TestServer()
    let client = try server.client()
    for byte in Array("PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc".utf8) {
      try client.send([byte])
    }
    #expect(try client.answer().status == 201)
    let second = "PUT /y HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
    let third = "GET /y HTTP/1.1\r\nHost: localhost\r\nX: \(String(repeating: "x", count: 9000))\r\n\r\n"
    try client.send(Array((second + third).utf8))
    #expect(try client.answer().status == 201)
    #expect(try client.answer().text == "abc")
  }

  static let brokenChunks = [
    Case("a bare LF after a size", "3\nabc\r\n0\r\n\r\n"),
    Case("a bare LF after a chunk", "3\r\nabc\n0\r\n\r\n"),
    Case("a bare LF after an extension", "3;a\nabc\r\n0\r\n\r\n"),
    Case("a bare LF after the last size", "3\r\nabc\r\n0\n\r\n"),
    Case("bare LFs only", "3\nabc\n0\n\n"),
    Case("a bare LF as the end of the trailers", "3\r\nabc\r\n0\r\n\n"),
    Case("a bare CR in an extension", "3;a\rb\r\nabc\r\n0\r\n\r\n"),
    Case("no end of line after a chunk", "3\r\nabc0\r\n\r\n"),
    Case("a size that is no number", "x\r\nabc\r\n0\r\n\r\n"),
    Case("a size with a sign", "+3\r\nabc\r\n0\r\n\r\n"),
    Case("a size with a prefix", "0x3\r\nabc\r\n0\r\n\r\n"),
    Case("a size beyond 60 bits", "1000000000000003\r\nabc\r\n0\r\n\r\n"),
    Case("a blank before a size", " 3\r\nabc\r\n0\r\n\r\n"),
  ]

  /// A proxy that interprets these lines differently sees other chunks, and another end of the request.
  @Test(arguments: brokenChunks) func brokenLinesBetweenChunksAreRefused(_ request: Case) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.send(Array((Self.put + "Transfer-Encoding: chunked\r\n\r\n" + request.head).utf8))
    #expect(try client.answer().status == request.status)
    #expect(client.isClosedByServer())
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// Large chunk extensions around little content would waste the server's time.
  @Test func manyExtensionsAreRefused() throws {
    let server = try TestServer()
    let client = try server.client()
    let chunk = "1;\(String(repeating: "x", count: 3000))\r\na\r\n"
    try? client.send(
      Array((Self.put + "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 10)).utf8))
    #expect(try client.answer().status == 400)
  }

  @Test(arguments: ["X: 1\nY: 2\r\n", "X : 1\r\n", "X: 1\rY: 2\r\n"])
  func aMalformedTrailerIsRefused(_ trailer: String) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.send(
      Array((Self.put + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\n" + trailer + "\r\n").utf8))
    #expect(try client.answer().status == 400)
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }
}
