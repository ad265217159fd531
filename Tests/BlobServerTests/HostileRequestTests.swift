import BlobServer
import Testing

/// Responses to malformed or hostile requests, and whether the server closes the connection, for every split into two
/// packets.
struct HostileRequestTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: String
    var status: Int
    var closes: Bool

    init(_ name: String, _ bytes: String, _ status: Int, closes: Bool = true) {
      (testDescription, self.bytes, self.status, self.closes) = (name, bytes, status, closes)
    }
  }

  private static let put = "PUT /x HTTP/1.1\r\nHost: localhost\r\n"
  private static let chunked = put + "Transfer-Encoding: chunked\r\n\r\n"
  private static let next = "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"

  static let rows = [
    Row("no target", "GET HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    Row("a blank in the target", "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    Row("two blanks", "GET /  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    Row("HTTP/0.9", "GET /\r\n", 400), Row("HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    Row("TLS", "\u{16}\u{3}\u{1}\u{2}\n", 400),
    Row("no host", "GET / HTTP/1.1\r\n\r\n", 400, closes: false),
    Row("two hosts", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400, closes: false),
    Row("a length with a sign", put + "Content-Length: +5\r\n\r\nhello", 400),
    Row("a list of lengths", put + "Content-Length: 5,5\r\n\r\nhello", 400),
    Row("a length beyond 64 bits", put + "Content-Length: 18446744073709551616\r\n\r\nhello", 413),
    Row("two lengths", put + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400),
    Row("a length and chunks", put + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    Row("another coding", put + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    Row("a hidden coding", put + "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    Row("a request in an extension", chunked + "2;\nxx\r\n22\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n", 400),
    Row("bare LFs", chunked + "5\nhello\n0\n\n", 400),
    Row("a folded trailer", chunked + "5\r\nhello\r\n0\r\nA: b\r\n c\r\n\r\n", 400),
    Row("a trailer without a colon", chunked + "5\r\nhello\r\n0\r\nnonsense\r\n\r\n", 400),
    Row("chunks that end early", chunked + "5\r\nhell\r\n0\r\n\r\n", 400),
    Row("a folder's name", "PUT /x/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 409, closes: false),
    Row(
      "a method of another protocol", "BREW / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 501,
      closes: false),
  ]

  @Test(arguments: rows) func isAnsweredOnce(_ row: Row) throws {
    let server = try TestServer()
    let bytes = Array(row.bytes.utf8)
    for place in 1...bytes.count {
      let client = try server.client()
      try? client.send(Array(bytes[..<place]))
      try? client.send(Array(bytes[place...]))
      if !row.closes {
        try client.send(Array(Self.next.utf8))
        let statuses = [try client.answer().status, try client.answer().status]
        #expect(statuses == [row.status, 404], "cut at \(place)")
        continue
      }
      try? client.send(Array(Self.next.utf8))
      client.finishSending()
      let text = String(decoding: client.readToEnd(), as: UTF8.self)
      #expect(
        text.hasPrefix("HTTP/1.1 \(row.status) ") && text.contains("\r\nConnection: close\r\n"),
        "cut at \(place): \(text)")
      #expect(text.split(separator: "HTTP/1.1 ").count == 1, "cut at \(place): \(text)")
    }
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// A trailer may be split at any byte.
  @Test func aTrailerMayComeInPieces() throws {
    let server = try TestServer()
    let digest = "Content-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\r\n"
    let head = "Transfer-Encoding: chunked\r\nTrailer: Content-Digest\r\n\r\n5\r\nhello\r\n0\r\n"
    for place in 1..<digest.utf8.count {
      let client = try server.client()
      let bytes = Array(digest.utf8)
      try client.send(Array("PUT /\(place) HTTP/1.1\r\nHost: localhost\r\n\(head)".utf8) + bytes[..<place])
      try client.send(Array(bytes[place...]) + Array("\r\n".utf8))
      #expect(try client.answer().status == 201, "cut at \(place)")
    }
  }

  /// Bytes after the last request of a connection are ignored.
  @Test func nothingIsReadBehindTheLastRequest() throws {
    let server = try TestServer()
    let client = try server.client()
    let delete = "DELETE /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    try client.send(Array((delete + "PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\na").utf8))
    #expect(String(decoding: client.readToEnd(), as: UTF8.self).split(separator: "HTTP/1.1 ").count == 1)
    #expect(server.folder.read("x") == nil)
  }
}
