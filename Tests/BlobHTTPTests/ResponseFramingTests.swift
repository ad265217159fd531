import Testing

@testable import BlobHTTP

@Suite struct AnswerFrameTests {
  /// Parses a response that arrives in pieces of `size` bytes; nil if it is malformed. `rest` does not belong to it.
  private func read(
    _ answer: String, to method: String = "GET", by size: Int
  ) -> (content: String, frame: ResponseFraming, rest: Int)? {
    var (frame, head, content) = (ResponseFraming(), HeadParser(), [UInt8]())
    var (held, coming) = ([UInt8](), Array(answer.utf8)[...])
    while frame.stage != .whole {
      let piece = held.withUnsafeBytes { frame.next(of: $0) }
      switch piece {
      case .malformed, .lineTooLong, .sectionTooLong: return nil
      case .more:
        if coming.isEmpty { return (String(decoding: content, as: UTF8.self), frame, held.count) }
        held += coming.prefix(size)
        coming = coming.dropFirst(size)
      case .framing(let count): held.removeFirst(count)
      case .content(let count):
        content += held.prefix(count)
        held.removeFirst(count)
      case .line(let count):
        _ = held.withUnsafeBytes { head.take(.init(rebasing: $0[..<count])) }
        held.removeFirst(count)
        if frame.stage == .head, let final = head.final, !frame.begin(final, to: method) { return nil }
      }
    }
    return (String(decoding: content, as: UTF8.self), frame, held.count + coming.count)
  }

  @Test(arguments: [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", "HTTP/1.1 200\nContent-Length: 5\n\nabcde",
    "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 104 \r\nLocation: /a\r\n\r\nHTTP/1.1 201 \r\ncontent-length: 5, 5\r\n\r\nabcde",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n03;a=b\r\ncde\r\n0\r\nTrailer: x\r\n\r\n",
  ])
  func contentIsFoundHoweverItComes(_ answer: String) throws {
    for size in [1, 2, 3, 7, 1000] {
      let found = try #require(read(answer, by: size))
      #expect(found.content == "abcde" && found.rest == 0 && found.frame.stage == .whole)
      #expect(found.frame.keepsConnection)
    }
  }

  /// A server may report its progress by any number of interim heads: their total size has no limit.
  @Test func anyNumberOfInterimHeadsIsRead() throws {
    let interim = String(repeating: "HTTP/1.1 104 \r\nUpload-Offset: 1048576\r\n\r\n", count: 8000)
    #expect(interim.utf8.count > ResponseFraming.longestSection)
    let found = try #require(read(interim + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", by: 4096))
    #expect(found.content == "abcde" && found.rest == 0)
  }

  @Test(arguments: [
    ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), ("PUT", "HTTP/1.1 204 Done\r\n\r\n"),
    ("GET", "HTTP/1.1 304 Same\r\nContent-Length: 9\r\n\r\n"),
  ])
  func someAnswersHaveNoContent(_ method: String, _ answer: String) throws {
    let found = try #require(read(answer + "HTTP/1.1 400 Next\r\n", to: method, by: 1000))
    #expect(found.content.isEmpty && found.frame.stage == .whole && found.rest == 19)
  }

  @Test func theConnectionIsKeptOnlyWhereTheServerSaysSo() throws {
    for field in ["Connection: close\r\n", "connection: a, Close\r\n"] {
      let found = try #require(read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\(field)\r\n", by: 5))
      #expect(found.frame.stage == .whole && !found.frame.keepsConnection)
    }
    let old = try #require(read("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", by: 5))
    #expect(old.frame.stage == .whole && !old.frame.keepsConnection)
    let both = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n0\r\n\r\n"
    let doubtful = try #require(read(both, by: 5))
    #expect(doubtful.frame.stage == .whole && !doubtful.frame.keepsConnection)
    let open = try #require(read("HTTP/1.1 200 OK\r\n\r\nabc", by: 5))
    #expect(open.frame.stage == .untilClosed && !open.frame.keepsConnection && open.content == "abc")
  }

  @Test(arguments: [
    "SSH-2.0-OpenSSH\r\n", "S", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2000\r\n\r\n", "HTTP/1.1 20 \r\n\r\n",
    "HTTP/1.1\r\n\r\n",
    "HTTP/1.1 099 No\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 101 Other\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
  ])
  func aResponseThatIsNotHTTPIsAnError(_ answer: String) {
    for size in [1, 3, 1000] { #expect(read(answer, by: size) == nil) }
  }

  @Test func noLineIsTooLongForEver() {
    let long = "X: " + String(repeating: "x", count: 20_000)
    #expect(read("HTTP/1.1 200 OK\r\n\(long)\r\n\r\n", by: 1000) == nil)
    let many = String(repeating: "X: \(String(repeating: "x", count: 1000))\r\n", count: 300)
    #expect(read("HTTP/1.1 200 OK\r\n\(many)\r\n", by: 10_000) == nil)
  }
}
