import BlobServer
import Blobs
import TestSupport
import Testing

/// When the server sends interim responses during an upload. A proxy may take the first one for the final response, and
/// then the upload stands still.
struct IETFProxyTests {
  /// Sends 3 MiB in chunks, and returns the heads of all responses.
  private func heads(_ fields: [(String, String)]) throws -> [RawHTTPClient.Answer] {
    let server = try TestServer()
    let client = try server.client()
    try client.head("POST", "/a", ietf(true) + fields + [("Transfer-Encoding", "chunked")])
    let piece = pattern(1 << 20)
    for _ in 0..<3 { try client.send(Array("100000\r\n".utf8) + piece + Array("\r\n".utf8)) }
    try client.send(Array("0\r\n\r\n".utf8))
    var heads: [RawHTTPClient.Answer] = []
    while heads.last.map({ $0.status < 200 }) ?? true { heads.append(try client.readHead()) }
    #expect(heads.last?.status == 201)
    return heads
  }

  /// The client asks for them by a field that is for the next server only, and this server is the next one.
  @Test func aClientThatAsksForThemGetsThemAll() throws {
    let heads = try heads(asksForInterim)
    #expect(heads.first?["Location"] != nil)
    #expect(heads.dropFirst().contains { $0.status == 104 && $0["Upload-Offset"] != nil }, "\(heads.map(\.status))")
  }

  /// A proxy has removed `Connection`, and not the field that it names: it knows little of HTTP/1.1. RFC 9110 §7.6.1.
  @Test func aProxyThatForwardsTheFieldGetsNone() throws {
    #expect(try heads([("Upload-Interim", "?1")]).map(\.status) == [201])
    #expect(try heads([("Connection", "keep-alive"), ("Upload-Interim", "?1")]).map(\.status) == [201])
  }

  /// Programs in Go before 1.23, among them Caddy, end a request after more than five interim responses.
  @Test(arguments: ["PUT", "POST", "PATCH"]) func aClientThatDoesNotAskGetsFourAtMost(_ method: String) throws {
    let server = try TestServer()
    var url = "/a"
    if method == "PATCH" {
      let creation = try server.client()
      try creation.head("POST", url, ietf(false) + [("Content-Length", "0")])
      #expect(try creation.readHead().status == 104)
      url = try #require(try creation.answer()["Location"])
    }
    let client = try server.client()
    let more =
      method == "PATCH"
      ? ietf(true) + [("Upload-Offset", "0"), ("Content-Type", "application/partial-upload")]
      : method == "POST" ? ietf(true) : []
    try client.head(method, url, more + [("Expect", "100-continue"), ("Transfer-Encoding", "chunked")])
    let piece = pattern(1 << 20)
    for _ in 0..<20 { try client.send(Array("100000\r\n".utf8) + piece + Array("\r\n".utf8)) }
    try client.send(Array("0\r\n\r\n".utf8))
    var interim = 0
    var head = try client.readHead()
    while head.status < 200 {
      interim += 1
      head = try client.readHead()
    }
    #expect(head.status / 100 == 2)
    #expect(interim <= 4)
  }

  /// Apple's clients need the upload's URL early, and no reports of progress.
  @Test func aClientThatDoesNotAskGetsTheURLOnly() throws {
    let heads = try heads([("Connection", "keep-alive")])
    #expect(heads.map(\.status) == [104, 201] && heads.first?["Location"] != nil)
  }
}
