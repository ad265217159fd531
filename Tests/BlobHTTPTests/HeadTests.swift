import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

/// Invalid response heads: each is reported by its kind, for bodies of known and unknown length.
@Suite struct HeadTests {
  private let transport = SocketTransport()

  private func send(_ head: String, isChunked: Bool) async throws(TransportError) -> HTTPResponse {
    let peer = ScriptedPeer([.readRequest, .send(head + "Content-Length: 0\r\n\r\n"), .hold])
    let source = PatternSource(length: 100_000, knowsLength: !isChunked)
    return try await transport.put(peer.url(), source)
  }

  @Test(
    arguments: [
      "HTTP/1.1 500 Failed\r\nHTTP/1.1 201 Created\r\n",
      "HTTP/1.1 500 Failed\r\nX: 1\r\nHTTP/1.1 201 Created: yes\r\n",
      "HTTP/1.1 200 OK\r\nno colon\r\n", "HTTP/1.1 200 OK\r\n: no name\r\n",
      "HTTP/1.1 200 OK\r\nX : space before the colon\r\n", "HTTP/1.1 200 OK\r\nX\t: tab before the colon\r\n",
      "HTTP/1.1 200 OK\r\nX: a\r\n folded: b\r\n", "HTTP/1.1 200 OK\r\n X: folded at once\r\n",
      "HTTP/1.1 200 OK\r\nX(a): b\r\n", "HTTP/1.1 200 OK\r\nX\u{0}: a\r\n", "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n",
      "HTTP/1.1 200 O\u{0}K\r\n", "HTTP/1.1 200 OK\r\nX: a\rY: b\r\n", "HTTP/1.1 200 OK\rX: a\r\n",
      "HTTP/1.1 200 OK\r\nX: a\r\r\n",
      "HTTP/1.1 104 Here\r\nno colon\r\n\r\nHTTP/1.1 200 OK\r\n",
    ], [false, true])
  func aHeadThatIsNotHTTPIsRefused(_ head: String, _ isChunked: Bool) async {
    let error = await failure { () async throws(TransportError) in try await send(head, isChunked: isChunked) }
    #expect(error.code == .badResponse && error.message.contains("is not HTTP/1.1"), "\(error)")
  }

  @Test(
    arguments: [
      "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 \r\nX:\r\n", "HTTP/1.1 200 OK\nX: with LF alone\n",
      "HTTP/1.1 200 \u{FC}ber\r\nX: \u{FC}ber\r\n", "HTTP/1.1 200 HTTP/1.1 500: no\r\nX: HTTP/1.1 500\r\n",
      "HTTP/1.1 200 OK\r\n!#$%&'*+-.^_`|~09azAZ: every letter of a name\r\n", "HTTP/1.0 200 OK\r\nX:\ta \t\r\n",
    ], [false, true])
  func aHeadOfAnyFormThatHTTPHasIsTaken(_ head: String, _ isChunked: Bool) async throws {
    #expect(try await send(head, isChunked: isChunked).status == 200)
  }

  /// An HTTP/1.1 response whose header section exceeds the limit is distinguished from a response of another protocol.
  @Test(arguments: [1, 2, 300], [false, true])
  func theErrorSaysThatAHeaderSectionIsTooLong(_ lines: Int, _ isChunked: Bool) async {
    let field = String(repeating: "a", count: 1_500_000 / lines)
    let head = "HTTP/1.1 200 OK\r\n" + (0..<lines).map { "X-\($0): \(field)\r\n" }.joined()
    let error = await failure { () async throws(TransportError) in try await send(head, isChunked: isChunked) }
    let limit = lines == 300 ? "262144" : "16384"
    #expect(error.code == .badResponse, "\(error)")
    #expect(error.message.contains("the header section of what 127.0.0.1:"), "\(error)")
    #expect(error.message.contains(" is too long") && error.message.contains(limit), "\(error)")
  }
}
