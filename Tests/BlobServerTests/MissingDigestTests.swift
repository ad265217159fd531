import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import TestSupport
import Testing

/// If `Trailer` announces a digest of the whole, the server waits for it: without it the bytes are not stored.
struct MissingDigestTests {
  private let announced = [("Trailer", "Repr-Digest"), ("Transfer-Encoding", "chunked")]

  private func digest(_ bytes: [UInt8]) -> (String, String) {
    ("Repr-Digest", DigestField.text([.sha256: Digest.value(of: bytes, .sha256)]))
  }

  /// For each protocol, the last append of five bytes, to `x` and `y`, and the fields for a request of its state.
  private func appends(
    _ server: TestServer
  ) throws -> [(name: BytePath, upload: String, head: [(String, String)], ask: [(String, String)])] {
    let complete = [("Upload-Complete", "?0"), ("Upload-Length", "5")]
    let resumable = try #require(try server.ask("PUT", "/x", complete, body: [])["Location"])
    let offset = ("Upload-Offset", "0")
    return [
      ("x", resumable, [offset, ("Upload-Complete", "?1"), ("Content-Type", "application/partial-upload")], []),
      ("y", try server.create("y", length: 5), [tus, offset, ("Content-Type", octets)], [tus]),
    ]
  }

  private func begin(_ server: TestServer, _ upload: String, _ head: [(String, String)]) throws -> RawHTTPClient {
    let client = try server.client()
    try client.head("PATCH", upload, head)
    try client.send(Array("5\r\n".utf8) + pattern(5) + [13, 10])
    #expect(try eventually { server.folder.sizeOfKept == 5 })
    return client
  }

  @Test func theLastAppendIsRefusedWithoutTheDigest() throws {
    for index in 0..<2 {
      let server = try TestServer()
      let (name, upload, head, ask) = try appends(server)[index]
      let client = try begin(server, upload, head + announced)
      try client.send(Array("0\r\n\r\n".utf8))
      let refusal = try client.answer()
      #expect(refusal.status == 400)
      #expect(refusal.text.contains("was announced and did not come"), "\(refusal.text)")
      #expect(try server.ask("HEAD", upload, ask)["Upload-Offset"] == "0", "it can be sent again")
      #expect(server.folder.read(name) == nil)
      let again = try begin(server, upload, head + announced)
      try again.send(Array("0\r\n\(digest(pattern(5)).0): \(digest(pattern(5)).1)\r\n\r\n".utf8))
      #expect(try again.answer().status < 300)
      #expect(server.folder.read(name) == pattern(5))
    }
  }

  @Test func aCutBeforeItPublishesNothing() throws {
    for index in 0..<2 {
      let server = try TestServer()
      let (name, upload, head, ask) = try appends(server)[index]
      do { _ = try begin(server, upload, head + announced) }
      #expect(try eventually { server.folder.sizeOfKept == 0 })
      #expect(try server.ask("HEAD", upload, ask)["Upload-Offset"] == "0")
      #expect(server.folder.read(name) == nil)
    }
  }

  @Test func aQueryBeforeTheDigestPublishesNothing() throws {
    for index in 0..<2 {
      let server = try TestServer()
      let (name, upload, head, ask) = try appends(server)[index]
      let client = try begin(server, upload, head + announced)
      #expect(try server.ask("HEAD", upload, ask)["Upload-Offset"] == "0")
      try client.send(Array("0\r\n\(digest([1]).0): \(digest([1]).1)\r\n\r\n".utf8))
      #expect(try client.answer().status == 409, "the question has taken the upload over")
      #expect(server.folder.read(name) == nil)
    }
  }

  @Test func aWholeCreationThatIsCutBeforeTheDigestIsNotPublished() throws {
    let server = try TestServer()
    let client = try server.client()
    let version = ("Upload-Draft-Interop-Version", "8")
    try client.head("PUT", "/x", [version, ("Upload-Complete", "?1"), ("Upload-Length", "5")] + announced)
    let upload = try #require(try client.readHead()["Location"])
    try client.send(Array("5\r\n".utf8) + pattern(5) + [13, 10])
    #expect(try eventually { server.folder.sizeOfKept == 5 })
    #expect(try server.ask("HEAD", upload, [version])["Upload-Offset"] == "0")
    try client.send(Array("0\r\n\(digest([1]).0): \(digest([1]).1)\r\n\r\n".utf8))
    #expect(try client.answer().status == 400)
    #expect(server.folder.read("x") == nil)
  }

  /// A digest in the head of the last append applies even if another request completes the upload first.
  @Test(arguments: [true, false]) func aPromiseOfTheHeadHoldsWhoeverPublishes(_ isTus: Bool) throws {
    let server = try TestServer()
    let (name, upload, head, ask) = try appends(server)[isTus ? 1 : 0]
    let client = try server.client()
    // The request has a Content-Length of 5 and stops after four bytes, so only the server can end it.
    try client.head("PATCH", upload, head + [digest([1]), ("Content-Length", "5")])
    try client.send(pattern(4))
    #expect(try eventually { server.folder.sizeOfKept == 4 })
    #expect(try server.ask("HEAD", upload, ask)["Upload-Offset"] == "4")
    let rest = head.filter { $0.0 != "Upload-Offset" } + [("Upload-Offset", "4")]
    #expect(try server.ask("PATCH", upload, rest, body: Array(pattern(5)[4...])).status == 400)
    #expect(server.folder.read(name) == nil)
  }
}
