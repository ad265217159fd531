import Testing

@testable import BlobHTTP

/// Requests given to the parser as a whole, and split into two pieces at every offset.
struct RequestParserTests {
  /// The parsed events: heads, content, ends with trailers, and the status of a refusal.
  private func read(_ pieces: [ArraySlice<UInt8>]) -> [String] {
    var (parser, held, seen): (RequestParser, [UInt8], [String]) = (RequestParser(), [], [])
    var content: [UInt8] = []
    for piece in pieces {
      held += piece
      while !held.isEmpty || !parser.isBetweenRequests {
        var taken = 0
        switch held.withUnsafeBytes({ parser.next(of: $0) }) {
        case .more: taken = -1
        case .framing(let count): taken = count
        case .head(let count, let head):
          taken = count
          let length = head.contentLength.map { "\($0)" } ?? "chunked"
          seen.append("\(head.method) \(String(decoding: head.target, as: UTF8.self)) \(length)")
        case .content(let count):
          content += held.prefix(count)
          taken = count
        case .end(let count, let trailers):
          taken = count
          seen.append("'\(String(decoding: content, as: UTF8.self))'")
          content = []
          seen += trailers.fields.map { "\($0.name)=\($0.value)" }
        case .malformed(let problem): return seen + ["\(problem.status)"]
        }
        if taken < 0 { break }
        held.removeFirst(taken)
      }
    }
    return seen + (held.isEmpty && parser.isBetweenRequests ? [] : ["…"])
  }

  private static let host = "Host: h\r\n"
  private static let put = "PUT /x HTTP/1.1\r\nHost: h\r\n"
  private static let chunked = put + "Transfer-Encoding: chunked\r\n\r\n"
  private static let chunkedHead = "PUT /x chunked"

  static let rows: [(String, [String])] = [
    ("GET / HTTP/1.1\r\n\(host)\r\nGET /b HTTP/1.0\r\n\r\n", ["GET / 0", "GET /b 0"]),
    ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", ["GET / 0"]),
    ("\(put)Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n", ["PUT /x 3", "'abc'", "GET / 0"]),
    ("\(put)Content-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n", ["PUT /x 0", "GET / 0"]),
    ("\(chunked)2\r\nab\r\n01;a=\"b\"\r\nc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", [chunkedHead, "'abc'", "GET / 0"]),
    ("\(chunked)3\r\nabc\r\n0\r\nA: b\r\nC:d \r\n\r\n", [chunkedHead, "'abc'", "A=b", "C=d"]),
    ("\(chunked)A\r\n0123456789\r\n00\r\n\r\n", [chunkedHead, "'0123456789'"]),
    ("\(put)Content-Length: 5\r\n\r\nabc", ["PUT /x 5", "…"]),
    ("GET /\r\n\r\n", ["400"]), ("GET / HTTP/1.1 \r\n\r\n", ["400"]), ("GET  / HTTP/1.1\r\n\r\n", ["400"]),
    ("GET /a b HTTP/1.1\r\n\r\n", ["400"]), (" GET / HTTP/1.1\r\n\r\n", ["400"]), ("GET\t/ HTTP/1.1\r\n\r\n", ["400"]),
    ("G(T / HTTP/1.1\r\n\r\n", ["400"]), ("GET /\u{1} HTTP/1.1\r\n\r\n", ["400"]), ("GET / http/1.1\r\n\r\n", ["400"]),
    ("GET / HTTP/11\r\n\r\n", ["400"]), ("GET / HTTP/2.0\r\n\r\n", ["505"]),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ["505"]),
    ("\u{16}\u{3}\u{1}\n", ["400"]), ("GET / HTTP/1.1\n\r\n", ["400"]), ("GET / HTTP/1.1\r\n\n", ["400"]),
    ("\n", ["400"]), ("GET / HTTP/1.1\r\nA: b\0\r\n\r\n", ["400"]), ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", ["400"]),
    ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", ["400"]), ("GET / HTTP/1.1\r\n A: b\r\n\r\n", ["400"]),
    ("GET / HTTP/1.1\r\nA : b\r\n\r\n", ["400"]), ("GET / HTTP/1.1\r\n: b\r\n\r\n", ["400"]),
    ("GET / HTTP/1.1\r\nAb\r\n\r\n", ["400"]), ("GET / HTTP/1.1\r\nA: \u{7f}\r\n\r\n", ["400"]),
    ("\(put)Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", ["400"]),
    ("\(put)Content-Length: 3, 3\r\n\r\nabc", ["400"]), ("\(put)Content-Length: -3\r\n\r\nabc", ["400"]),
    ("\(put)Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ["400"]),
    ("\(put)Content-Length: 18446744073709551616\r\n\r\n", ["413"]), ("\(put)Content-Length: 1a\r\n\r\n", ["400"]),
    ("\(put)Transfer-Encoding: gzip, chunked\r\n\r\n", ["501"]), ("\(put)Transfer-Encoding: identity\r\n\r\n", ["501"]),
    ("\(put)Transfer-Encoding: chunked \r\n\r\n", ["400"]), ("\(put)Transfer-Encoding: \u{b}chunked\r\n\r\n", ["400"]),
    ("PUT /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", ["400"]), ("PATCH /x HTTP/1.0\r\n\r\n", ["411"]),
    ("\(chunked)3\nabc\r\n", [chunkedHead, "400"]), ("\(chunked)3\r\nabc\n0\r\n\r\n", [chunkedHead, "400"]),
    ("\(chunked)3\r\nabcd\r\n", [chunkedHead, "400"]), ("\(chunked)-3\r\nabc\r\n", [chunkedHead, "400"]),
    ("\(chunked)3;\nxx\r\nabc\r\n", [chunkedHead, "400"]), ("\(chunked)\r\n", [chunkedHead, "400"]),
    ("\(chunked)3,4\r\nabc\r\n", [chunkedHead, "400"]), ("\(chunked)3;a\rb\r\nabc\r\n", [chunkedHead, "400"]),
    ("\(chunked)fffffffffffffffff\r\n", [chunkedHead, "400"]),
    ("\(chunked)0\r\nA: b\nC: d\r\n\r\n", [chunkedHead, "400"]),
    ("\(chunked)0\r\n A: b\r\n\r\n", [chunkedHead, "400"]),
    ("\(chunked)0\r\n\n", [chunkedHead, "400"]),
  ]

  @Test(arguments: rows) func aRequestIsParsedTheSameHoweverItIsCut(_ text: String, _ wanted: [String]) {
    let bytes = Array(text.utf8)
    #expect(read([bytes[...]]) == wanted, "\(text.debugDescription)")
    for place in 1..<bytes.count {
      #expect(read([bytes[..<place], bytes[place...]]) == wanted, "\(text.debugDescription), cut at \(place)")
    }
    #expect(read(bytes.indices.map { bytes[$0...$0] }) == wanted, "\(text.debugDescription), byte after byte")
  }

  /// A request that is refused after a HEAD request is not a HEAD itself: its response has content.
  @Test func aRequestHasNoMethodBeforeItsFirstLine() {
    var parser = RequestParser()
    let head = Array("HEAD /x HTTP/1.1\r\n\(Self.host)\r\n".utf8)
    var rest = head[...]
    while !rest.isEmpty {
      switch Array(rest).withUnsafeBytes({ parser.next(of: $0) }) {
      case .framing(let count), .head(let count, _): rest = rest.dropFirst(count)
      default: rest = []
      }
    }
    #expect(parser.isBetweenRequests && parser.method.isEmpty)
  }

  @Test func everythingHasALimit() {
    let long = String(repeating: "x", count: 40_000)
    let cases = [
      ("GET /\(long) HTTP/1.1\r\n\r\n", ["414"]), ("GET / HTTP/1.1\r\nA: \(long)\r\n\r\n", ["431"]),
      ("GET / HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 6000) + "\r\n", ["431"]),
      ("GET / HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 300) + "\r\n", ["431"]),
      (Self.chunked + "0\r\n" + String(repeating: "A: b\r\n", count: 300), [Self.chunkedHead, "431"]),
      (String(repeating: "\r\n", count: 20_000), ["431"]),
      (Self.chunked + "0\r\nA: \(long)\r\n\r\n", [Self.chunkedHead, "431"]),
      (Self.chunked + "0\r\n" + String(repeating: "A: b\r\n", count: 3000), [Self.chunkedHead, "431"]),
      (Self.chunked + "1;\(long)\r\na\r\n", [Self.chunkedHead, "400"]),
      (
        Self.chunked + String(repeating: "1;\(long.prefix(3000))\r\na\r\n", count: 10),
        [Self.chunkedHead, "400"]
      ),
    ]
    for (text, wanted) in cases {
      let bytes = Array(text.utf8)
      #expect(read([bytes[...]]) == wanted, "\(text.prefix(100))")
      let pieces = stride(from: 0, to: bytes.count, by: 1000).map { bytes[$0..<min(bytes.count, $0 + 1000)] }
      #expect(read(pieces) == wanted, "\(text.prefix(100)), in pieces")
    }
    let whole = "GET /\(long.prefix(16_000)) HTTP/1.1\r\nA: \(long.prefix(16_000))\r\n\r\n"
    #expect(read([Array(whole.utf8)[...]]).count == 1)
  }

  /// Content that is spliced without the parser.
  @Test func contentNeedNotBeLookedAt() {
    func begin(_ text: String) -> RequestParser {
      var parser = RequestParser()
      var rest = Array(text.utf8)[...]
      while !rest.isEmpty {
        switch rest.withUnsafeBytes({ parser.next(of: $0) }) {
        case .framing(let count), .head(let count, _): rest = rest.dropFirst(count)
        default: return parser
        }
      }
      return parser
    }
    var known = begin("\(Self.put)Content-Length: 5\r\n\r\n")
    #expect(known.contentAhead == 5)
    #expect(!known.take(3) && known.contentAhead == 2)
    #expect(known.take(2) && known.contentAhead == 0 && known.isBetweenRequests)
    var chunked = begin("\(Self.chunked)5\r\n")
    #expect(chunked.contentAhead == 5)
    #expect(!chunked.take(5) && chunked.contentAhead == 0)
    let end = Array("\r\n0\r\n\r\n".utf8)
    guard case .framing(2) = end.withUnsafeBytes({ chunked.next(of: $0) }) else {
      Issue.record("the end of the chunk is not found")
      return
    }
  }
}
