import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import Testing

/// A form with a digest is verified completely before any of its files is published. RFC 9530.
struct FormDigestTests {
  private let type = ("Content-Type", "multipart/form-data; boundary=B")
  private let names = (0..<40).map { "f\($0)" }

  private func form() -> [UInt8] {
    let parts = names.flatMap { name in
      let head = "--B\r\nContent-Disposition: form-data; name=f; filename=\(name)\r\n\r\n"
      return Array(head.utf8) + pattern(5000) + [13, 10]
    }
    return parts + Array("--B--\r\n".utf8)
  }
  private func digest(_ name: String, _ bytes: [UInt8]) -> (String, String) {
    (name, DigestField.text([.sha256: Digest.value(of: bytes, .sha256)]))
  }

  @Test(arguments: ["Content-Digest", "Repr-Digest"]) func aWrongDigestPublishesNothing(_ name: String) throws {
    let server = try TestServer { $0.maxTotal = 300_000 }
    for _ in 0..<3 {  // each failure must release the reserved space
      let answer = try server.ask("POST", "/", [type, digest(name, [1])], body: form())
      #expect(answer.status == 400)
      #expect(answer.text.contains("#digest-mismatching-values"), "\(answer.text)")
      #expect(names.allSatisfy { server.folder.read(BytePath($0)) == nil })
      #expect(try eventually { server.folder.kept.isEmpty })
    }
    #expect(try server.ask("POST", "/", [type, digest(name, form())], body: form()).status == 201)
    #expect(names.allSatisfy { server.folder.read(BytePath($0)) == pattern(5000) })
    #expect(server.folder.kept.isEmpty)
  }

  @Test(arguments: [true, false]) func aDigestMayComeBehindTheForm(_ comes: Bool) throws {
    let server = try TestServer()
    let client = try server.client()
    let body = form()
    try client.head("POST", "/", [type, ("Transfer-Encoding", "chunked"), ("Trailer", "Content-Digest")])
    try client.send(Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n".utf8))
    let field = digest("Content-Digest", body)
    try client.send(Array(comes ? "\(field.0): \(field.1)\r\n\r\n".utf8 : "\r\n".utf8))
    #expect(try client.answer().status == (comes ? 201 : 400))
    #expect((server.folder.read("f0") != nil) == comes)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// The digest was not computed while the form arrived, so none of the files can be trusted.
  @Test func aDigestThatNobodyAnnouncedPublishesNothing() throws {
    let server = try TestServer()
    let client = try server.client()
    let body = form()
    try client.head("POST", "/", [type, ("Transfer-Encoding", "chunked")])
    let field = digest("Content-Digest", body)
    try client.send(
      Array("\(String(body.count, radix: 16))\r\n".utf8) + body + Array("\r\n0\r\n\(field.0): \(field.1)\r\n\r\n".utf8))
    #expect(try client.answer().status == 400)
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(names.allSatisfy { server.folder.read(BytePath($0)) == nil })
  }

  @Test func aFormThatIsCutKeepsNoneOfItsFiles() throws {
    let server = try TestServer()
    do {
      let client = try server.client()
      let body = form()
      try client.head("POST", "/", [type, digest("Content-Digest", body), ("Content-Length", "\(body.count)")])
      try client.send(Array(body[..<100_000]))
      #expect(try eventually { server.folder.sizeOfKept > 50_000 })
    }
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(server.folder.read("f0") == nil)
  }

  /// A request for a digest is no reason to delay publishing.
  @Test func aWishForADigestIsNoPromise() throws {
    let server = try TestServer()
    let head = [type, ("Want-Repr-Digest", "sha-256=1")]
    #expect(try server.ask("POST", "/", head, body: form()).status == 201)
  }
}
