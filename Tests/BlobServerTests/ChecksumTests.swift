import BlobServer
import Blobs
import Testing

/// tus 1.0 §Checksum.
struct ChecksumTests {
  private func field(_ bytes: [UInt8], _ algorithm: Digest.Algorithm = .sha1) -> (String, String) {
    ("Upload-Checksum", "\(algorithm) \(base64(Digest.value(of: bytes, algorithm)))")
  }

  @Test(arguments: ["sha1", "crc32c", "sha256"])
  func aBodyWithItsChecksumIsKept(_ name: String) throws {
    let server = try TestServer()
    let options = try server.ask("OPTIONS", "/")
    #expect(options.headers.list("Tus-Extension").contains("checksum"))
    #expect(options.headers.list("Tus-Checksum-Algorithm").contains(name))
    let algorithm = try #require(Digest.Algorithm(name))
    let bytes = pattern(300_000)
    let upload = try server.create("x", length: bytes.count)
    let (first, last) = (Array(bytes[..<200_000]), Array(bytes[200_000...]))
    #expect(try server.patch(upload, at: 0, first, [field(first, algorithm)])["Upload-Offset"] == "200000")
    #expect(server.folder.kept.count == 2, "the mark stays: \(server.folder.kept)")
    #expect(try server.patch(upload, at: 200_000, last, [field(last, algorithm)]).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aWrongChecksumMovesNothing() throws {
    let server = try TestServer()
    let bytes = pattern(100_000)
    let upload = try server.create("x", length: bytes.count)
    #expect(try server.patch(upload, at: 0, Array(bytes[..<1000])).status == 204)
    let rest = Array(bytes[1000...])
    for _ in 0..<2 {
      let answer = try server.patch(upload, at: 1000, pattern(99_000, seed: 9), [field(rest)])
      #expect(answer.status == 460)
      #expect(try server.offset(upload) == 1000)
      #expect(server.folder.sizeOfKept == 1000)
    }
    #expect(server.folder.kept.count == 2, "a mark stays: \(server.folder.kept)")
    #expect(try server.patch(upload, at: 1000, rest, [field(rest)]).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aConnectionGoesOnAfterAMismatch() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 4)
    let client = try server.client()
    let head = [tus, ("Content-Type", octets), ("Upload-Offset", "0"), field([1, 2, 3, 4])]
    #expect(try client.ask("PATCH", upload, head, body: [1, 2, 3, 5]).status == 460)
    #expect(try client.ask("PATCH", upload, head, body: [1, 2, 3, 4]).status == 204)
    #expect(server.folder.read("x") == [1, 2, 3, 4])
  }

  @Test(
    arguments: [
      "", "sha1", "sha1 ", "sha1  qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "sha1 !!!!", "sha1 AAAA", "md5 AAAA",
      "SHA1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "crc32c qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0= x",
    ])
  func whatIsNoChecksumIsRefused(_ text: String) throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 3)
    #expect(try server.patch(upload, at: 0, Array("abc".utf8), [("Upload-Checksum", text)]).status == 400)
    #expect(try server.offset(upload) == 0)
    #expect(server.folder.sizeOfKept == 0)
  }

  @Test func twoChecksumsAreNone() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 1)
    #expect(try server.patch(upload, at: 0, [1], [field([1]), field([2])]).status == 400)
  }

  @Test func whatIsCutOffWasNeverVouchedFor() throws {
    let server = try TestServer()
    let bytes = pattern(50_000)
    let upload = try server.create("x", length: 100_000)
    #expect(try server.patch(upload, at: 0, bytes, [field(bytes)]).status == 204)
    do {
      let client = try server.beginPatch(upload, at: 50_000, length: 50_000, bytes, more: [field(bytes)], sent: 30_000)
      #expect(try eventually { server.folder.sizeOfKept == 80_000 })
      _ = client
    }
    #expect(try eventually { server.folder.sizeOfKept == 50_000 })
    #expect(try server.offset(upload) == 50_000)
    #expect(server.folder.kept.count == 2)
  }

  @Test func whoTakesOverDropsWhatNobodyVouchedFor() throws {
    let server = try TestServer()
    let bytes = pattern(60_000)
    let upload = try server.create("x", length: bytes.count)
    let slow = try server.beginPatch(upload, at: 0, length: 60_000, bytes, more: [field(bytes)], sent: 30_000)
    #expect(try eventually { server.folder.sizeOfKept == 30_000 })
    #expect(try server.offset(upload) == 0)
    #expect(server.folder.sizeOfKept == 0)
    #expect(try server.patch(upload, at: 0, Array(bytes[..<10_000])).status == 204)
    try slow.send(Array(bytes[30_000...]))
    #expect(try slow.answer().status == 409)
    #expect(try server.offset(upload) == 10_000)
    #expect(try server.patch(upload, at: 10_000, Array(bytes[10_000...])).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aCreationWithAWrongChecksumCreatesNothing() throws {
    let server = try TestServer()
    func create(_ body: [UInt8], length: Int) throws -> WireClient.Answer {
      try server.ask(
        "POST", "/",
        [
          tus, ("Content-Type", octets), ("Upload-Length", "\(length)"), field(pattern(1000)),
          ("Upload-Metadata", "filename \(base64("x"))"),
        ], body: body)
    }
    for length in [1000, 2000] { #expect(try create(pattern(1000, seed: 1), length: length).status == 460) }
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(server.folder.read("x") == nil)
    #expect(try create(pattern(1000), length: 1000).status == 201)
    #expect(server.folder.read("x") == pattern(1000))
  }
}
