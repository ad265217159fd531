import BlobCrypto
import BlobServer
import Blobs
import TestSupport
import Testing

// What the server refuses.
extension IETFTests {
  @Test func noWordAboutTheEnd() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    let head = version8 + [("Upload-Offset", "0"), ("Content-Type", "application/partial-upload")]
    for field in [[], [("Upload-Complete", "1")], [("Upload-Complete", "true")]] {
      #expect(try server.ask("PATCH", upload, head + field, body: [1]).status == 400)
    }
  }

  @Test func anotherMediaTypeFromVersion6On() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    func status(_ version: Int, at offset: Int) throws -> Int {
      let head = ietf(false, version) + [("Upload-Offset", "\(offset)"), ("Content-Type", "image/jpeg")]
      return try server.ask("PATCH", upload, head, body: [1]).status
    }
    #expect(try status(8, at: 0) == 415)
    #expect(try status(6, at: 0) == 415)
    #expect(try status(5, at: 0) == 204)
    #expect(try status(3, at: 1) == 204)
  }

  @Test func anAppendAfterTheEnd() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 1)
    #expect(try append(server, upload, at: 0, [1], isLast: true).status == 201)
    let answer = try append(server, upload, at: 1, [2], isLast: true)
    #expect(answer.status == 400)
    #expect(answer.text.contains("#completed-upload"))
    #expect(server.folder.read("x") == [1])
  }

  @Test func lengthsThatContradict() throws {
    let server = try TestServer()
    let answer = try server.ask("POST", "/x", [("Upload-Complete", "?1"), ("Upload-Length", "5")], body: [1])
    #expect(answer.status == 400)
    #expect(answer.text.contains("#inconsistent-upload-length"))
    let upload = try create(server, "/x", length: 5)
    #expect(try append(server, upload, at: 0, [1, 2], isLast: true).status == 400)
    #expect(try append(server, upload, at: 0, [1, 2, 3, 4, 5], isLast: true).status == 201)
  }

  @Test func unknownUploadsAre404AndLargeOnes413() throws {
    let server = try TestServer { $0.maxSize = 100 }
    let nobody = "/.fullbore-upload/0123456789abcdef0123456789abcdef"
    #expect(try server.ask("HEAD", nobody, version8).status == 404)
    #expect(try append(server, nobody, at: 0, [1], isLast: true).status == 404)
    #expect(
      try server.ask("POST", "/x", version8 + [("Upload-Complete", "?0"), ("Upload-Length", "101")]).status == 413)
    let upload = try create(server, "/x", length: nil)
    #expect(try append(server, upload, at: 0, pattern(101), isLast: false).status == 413)
  }

  @Test func anOlderAppendEndsWhenANewerOneComes() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: bytes.count)
    let older = try server.client()
    try older.head("PATCH", upload, patch(0, isLast: true) + [("Content-Length", "\(bytes.count)")])
    try older.send(Array(bytes[..<300_000]))
    #expect(try eventually { server.folder.sizeOfKept == 300_000 })
    #expect(try server.ask("HEAD", upload, version8)["Upload-Offset"] == "300000")
    #expect(try append(server, upload, at: 300_000, Array(bytes[300_000...]), isLast: true).status == 201)
    try? older.send(Array(bytes[300_000..<500_000]))
    #expect(server.folder.read("x") == bytes)
  }
}
