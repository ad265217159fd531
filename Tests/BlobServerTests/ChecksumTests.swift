import BlobCrypto
import BlobServer
import Blobs
import TestSupport
import Testing

/// Tests for tus 1.0 §Checksum.
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
  func anInvalidChecksumIsRefused(_ text: String) throws {
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

  @Test func bytesOfACutPatchWithChecksumAreDiscarded() throws {
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

  @Test func aTakeoverDiscardsBytesWithoutAVerifiedChecksum() throws {
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
    func create(_ body: [UInt8], length: Int) throws -> RawHTTPClient.Answer {
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

  // Sends the checksum as a trailer, tus 1.0 §Checksum-Trailer.

  private func send(
    _ server: TestServer, _ upload: String, _ bytes: [UInt8], announced: Bool = true, _ trailer: String
  ) throws -> RawHTTPClient.Answer {
    let client = try server.client()
    var head = [tus, ("Content-Type", octets), ("Upload-Offset", "0"), ("Transfer-Encoding", "chunked")]
    if announced { head.append(("Trailer", "Upload-Checksum")) }
    try client.head("PATCH", upload, head)
    for start in stride(from: 0, to: bytes.count, by: 40_000) {
      let chunk = bytes[start..<min(bytes.count, start + 40_000)]
      try client.send(Array("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Array("\r\n".utf8))
    }
    try client.send(Array("0\r\n\(trailer)\r\n".utf8))
    return try client.answer()
  }

  @Test(arguments: ["sha1", "crc32c", "sha256"]) func aChecksumMayComeAfterTheBytes(_ name: String) throws {
    let server = try TestServer()
    #expect(try server.ask("OPTIONS", "/").headers.list("Tus-Extension").contains("checksum-trailer"))
    let bytes = pattern(100_000)
    let upload = try server.create("x", length: bytes.count)
    let right = field(bytes, try #require(Digest.Algorithm(name)))
    for wrong in [field(pattern(1)).1, "sha1 AAAA", ""] {
      let answer = try send(server, upload, bytes, "Upload-Checksum: \(wrong)\r\n")
      #expect([400, 460].contains(answer.status), "\(wrong)")
      #expect(try server.offset(upload) == 0)
      #expect(server.folder.sizeOfKept == 0)
    }
    #expect(try send(server, upload, bytes, "X: y\r\n").status == 400, "announced and not sent")
    #expect(try server.offset(upload) == 0)
    #expect(try send(server, upload, bytes, "X: y\r\n\(right.0): \(right.1)\r\n").status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aChecksumThatWasNotAnnouncedIsNotPassedOver() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 10)
    let right = field(pattern(5))
    let trailer = "\(right.0): \(right.1)\r\n"
    #expect(try send(server, upload, pattern(5), announced: false, trailer).status == 400)
  }
}
