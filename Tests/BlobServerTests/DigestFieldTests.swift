import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import TestSupport
import Testing

/// Tests for RFC 9530.
struct DigestFieldTests {
  func field(_ name: String, _ bytes: [UInt8], _ algorithm: Digest.Algorithm = .sha256) -> (String, String) {
    (name, DigestField.text([algorithm: Digest.value(of: bytes, algorithm)]))
  }
  func ietf(_ complete: Bool) -> [(String, String)] {
    [("Upload-Complete", complete ? "?1" : "?0")]
  }
  let append = [("Content-Type", "application/partial-upload")]

  @Test(arguments: ["Content-Digest", "Repr-Digest"], [Digest.Algorithm.sha256, .sha512])
  func aPutWithItsDigestIsPublished(_ name: String, _ algorithm: Digest.Algorithm) throws {
    let server = try TestServer()
    let bytes = pattern(700_000)
    #expect(try server.ask("PUT", "/x", [field(name, bytes, algorithm)], body: bytes).status == 201)
    #expect(server.folder.read("x") == bytes)
  }

  @Test(arguments: ["Content-Digest", "Repr-Digest"]) func aPutWithAnotherDigestIsNot(_ name: String) throws {
    let server = try TestServer()
    let bytes = pattern(700_000)
    let answer = try server.ask("PUT", "/x", [field(name, [1])], body: bytes)
    #expect(answer.status == 400)
    #expect(answer["Content-Type"] == "application/problem+json")
    #expect(answer.text.contains("#digest-mismatching-values\""))
    #expect(server.folder.read("x") == nil)
    #expect(server.folder.kept.isEmpty)
  }

  /// One wrong digest among right ones is enough to reject the body.
  @Test func everyDigestCounts() throws {
    let server = try TestServer()
    let both = [field("Content-Digest", [1, 2]), field("Repr-Digest", [1, 3])]
    #expect(try server.ask("PUT", "/x", both, body: [1, 2]).status == 400)
    let lines = [field("Repr-Digest", [1, 2]), field("Repr-Digest", [1, 3], .sha512)]
    #expect(try server.ask("PUT", "/x", lines, body: [1, 2]).status == 400)
    #expect(try server.ask("PUT", "/x", [lines[0], both[0]], body: [1, 2]).status == 201)
  }

  @Test(arguments: [
    "", "sha-256", "sha-256=", "sha-256=AAAA", "sha-256=:AAAA:", "sha-256=:AAAA", "sha-256=:!:",
    "sha-512=:AAAA:, a=:AA:",
  ])
  func anInvalidDigestFieldIsRefused(_ text: String) throws {
    let server = try TestServer()
    for name in ["Content-Digest", "Repr-Digest"] {
      let answer = try server.ask("PUT", "/x", [(name, text)], body: [1])
      #expect(answer.status == 400, "\(name): \(text)")
      #expect(answer.text.contains("#digest-invalid-values"))
    }
    #expect(server.folder.kept.isEmpty)
  }

  @Test func otherAlgorithmsArePassedOver() throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/x", [("Repr-Digest", "md5=:AAAA:, unixsum=:AA==:")], body: [1]).status == 201)
  }

  @Test func aDigestMayComeAfterTheBytes() throws {
    let server = try TestServer()
    for (bytes, status) in [(pattern(5), 400), (pattern(4), 201)] {
      let client = try server.client()
      try client.head("PUT", "/x", [("Transfer-Encoding", "chunked"), ("Trailer", "Content-Digest")])
      try client.send(Array("4\r\n".utf8) + pattern(4) + Array("\r\n0\r\n".utf8))
      let digest = field("content-digest", bytes)
      try client.send(Array("\(digest.0): \(digest.1)\r\n\r\n".utf8))
      #expect(try client.answer().status == status)
    }
  }

  @Test func aDigestIsReturnedIfTheClientWantsIt() throws {
    let server = try TestServer()
    let bytes = pattern(1000)
    let want = ("Want-Repr-Digest", "md5=10, sha-512=3, sha-256=7, sha=0")
    let digest = field("", bytes).1
    #expect(try server.ask("PUT", "/x", [want], body: bytes)["Repr-Digest"] == digest)
    for method in ["GET", "HEAD"] {
      #expect(try server.ask(method, "/x", [want])["Repr-Digest"] == digest)
      #expect(try server.ask(method, "/x")["Repr-Digest"] == nil)
      #expect(try server.ask(method, "/x", [("Want-Repr-Digest", "sha-256=0")])["Repr-Digest"] == nil)
    }
    let creation = try server.ask("PUT", "/y", ietf(true) + [want], body: bytes)
    #expect(creation["Repr-Digest"] == digest)
    // Other bytes are another representation, whose digest the server has not computed.
    server.folder.write("x", pattern(1000, seed: 1))
    #expect(try server.ask("GET", "/x", [want])["Repr-Digest"] == nil)
  }

  // MARK: Resumable uploads

  @Test(arguments: ["Content-Digest", "Repr-Digest"], [1000, 5 << 20])
  func aWholeCreationIsChecked(_ name: String, _ count: Int) throws {
    let server = try TestServer()
    let bytes = pattern(count)
    let wrong = try server.ask("PUT", "/x", ietf(true) + [field(name, [1])], body: bytes)
    #expect(wrong.status == 400)
    #expect(wrong.text.contains("#digest-mismatching-values"))
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
    let right = try server.ask("PUT", "/x", ietf(true) + [field(name, bytes)], body: bytes)
    #expect(right.status == 201)
    #expect(server.folder.read("x") == bytes)
  }

  /// The digest announced at creation is stored with the upload, also across a restart of the server.
  @Test(arguments: [true, false]) func aPromiseIsHeldAgainstWhatManyRequestsBrought(_ isRight: Bool) throws {
    let folder = try TestFolder()
    let bytes = pattern(300_000)
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      let promise = field("Repr-Digest", isRight ? bytes : [1])
      let answer = try server.ask("PUT", "/x", ietf(false) + [promise], body: Array(bytes[..<100_000]))
      #expect(answer.status == 201)
      upload = try #require(answer["Location"])
    }
    let server = try TestServer(over: folder)
    let rest = [("Upload-Offset", "100000")] + append + ietf(true)
    let answer = try server.ask("PATCH", upload, rest, body: Array(bytes[100_000...]))
    #expect(answer.status == (isRight ? 201 : 400))
    #expect(folder.read("x") == (isRight ? bytes : nil))
    if isRight { return }
    #expect(answer["Upload-Complete"] == "?1", "there is nothing to go on with")
    #expect(answer.text.contains("#digest-mismatching-values"))
    #expect(folder.kept.isEmpty)
    #expect(try server.ask("HEAD", upload).status == 410)
  }

  @Test func anAppendWithAnotherDigestMovesNothing() throws {
    let server = try TestServer()
    let bytes = pattern(200_000)
    let creation = try server.ask("PUT", "/x", ietf(false), body: Array(bytes[..<1000]))
    let upload = try #require(creation["Location"])
    let head = [("Upload-Offset", "1000")] + append + ietf(true)
    for _ in 0..<2 {
      let wrong = try server.ask("PATCH", upload, head + [field("Content-Digest", [1])], body: Array(bytes[1000...]))
      #expect(wrong.status == 400)
      #expect(wrong["Upload-Offset"] == "1000")
      #expect(wrong["Upload-Complete"] == "?0")
      #expect(server.folder.sizeOfKept == 1000)
    }
    let rest = Array(bytes[1000...])
    #expect(try server.ask("PATCH", upload, head + [field("Content-Digest", rest)], body: rest).status == 201)
    #expect(server.folder.read("x") == bytes)
  }

  @Test func aCutAppendWithADigestKeepsNothingOfIt() throws {
    let server = try TestServer()
    let creation = try server.ask("PUT", "/x", ietf(false), body: pattern(1000))
    let upload = try #require(creation["Location"])
    do {
      let client = try server.client()
      try client.head(
        "PATCH", upload,
        [("Upload-Offset", "1000"), ("Content-Length", "50000"), field("Content-Digest", [1])] + append + ietf(true))
      try client.send(pattern(20_000))
      #expect(try eventually { server.folder.sizeOfKept > 1000 })
    }
    #expect(try eventually { server.folder.sizeOfKept == 1000 })
    #expect(try server.ask("HEAD", upload)["Upload-Offset"] == "1000")
  }

  /// A digest of the whole that the last append announces has the same effect as one announced at creation.
  @Test(arguments: [true, false], [true, false])
  func anAppendThatBringsTheEndCanPromiseTheWhole(_ isRight: Bool, _ isTrailer: Bool) throws {
    let server = try TestServer()
    let bytes = pattern(300_000)
    let creation = try server.ask("PUT", "/x", ietf(false), body: Array(bytes[..<100_000]))
    let upload = try #require(creation["Location"])
    let promise = field("Repr-Digest", isRight ? bytes : [1])
    let head = [("Upload-Offset", "100000")] + append + ietf(true)
    let client = try server.client()
    let rest = Array(bytes[100_000...])
    if isTrailer {
      try client.head("PATCH", upload, head + [("Transfer-Encoding", "chunked"), ("Trailer", "Repr-Digest")])
      try client.send(Array("\(String(rest.count, radix: 16))\r\n".utf8) + rest)
      try client.send(Array("\r\n0\r\n\(promise.0): \(promise.1)\r\n\r\n".utf8))
    } else {
      try client.head("PATCH", upload, head + [promise, ("Content-Length", "\(rest.count)")])
      try client.send(rest)
    }
    var answer = try client.answer()
    while answer.status == 104 { answer = try client.answer() }
    #expect(answer.status == (isRight ? 201 : 400))
    #expect(server.folder.read("x") == (isRight ? bytes : nil))
    if isRight { return #expect(answer["Repr-Digest"] == promise.1) }
    #expect(answer.text.contains("#digest-mismatching-values"))
    #expect(server.folder.kept.isEmpty)
    #expect(try server.ask("HEAD", upload).status == 410)
  }

  @Test func promisesThatContradictEachOtherAreRefused() throws {
    let server = try TestServer()
    let bytes = pattern(2000)
    let creation = try server.ask("PUT", "/x", ietf(false) + [field("Repr-Digest", bytes)], body: Array(bytes[..<1000]))
    let upload = try #require(creation["Location"])
    let head = [("Upload-Offset", "1000")] + append + ietf(true)
    let answer = try server.ask("PATCH", upload, head + [field("Repr-Digest", [1])], body: Array(bytes[1000...]))
    #expect(answer.status == 400)
    #expect(server.folder.read("x") == nil)
    #expect(try server.ask("HEAD", upload)["Upload-Offset"] == "1000", "it was refused before its bytes")
    #expect(server.folder.read("x") == nil)
  }

  /// The bytes of an append are stored as they arrive, unless a digest of them was announced.
  @Test(arguments: ["Content-Digest", "Repr-Digest"])
  func bytesThatAreRefusedWithTheirDigestAreNotPublished(_ name: String) throws {
    let server = try TestServer()
    let creation = try server.ask("PUT", "/x", ietf(false) + [("Upload-Length", "8")], body: pattern(4))
    let upload = try #require(creation["Location"])
    let client = try server.client()
    try client.head(
      "PATCH", upload, [("Transfer-Encoding", "chunked"), ("Upload-Offset", "4")] + append + ietf(true))
    let digest = name == "Repr-Digest" ? ("Repr-Digest", "sha-256=abc") : field(name, [1])
    try client.send(Array("4\r\n".utf8) + pattern(4) + Array("\r\n0\r\n\(digest.0): \(digest.1)\r\n\r\n".utf8))
    #expect(try client.answer().status == 400)
    #expect([404, 410].contains(try server.ask("HEAD", upload).status))
    #expect(server.folder.read("x") == nil)
  }

  /// The upload then belongs to the request that has taken it over.
  @Test func aRequestThatWasTakenOverEndsNothing() throws {
    let server = try TestServer()
    let creation = try server.ask("PUT", "/x", ietf(false) + [("Upload-Length", "12")], body: pattern(4))
    let upload = try #require(creation["Location"])
    let client = try server.client()
    try client.head(
      "PATCH", upload, [("Transfer-Encoding", "chunked"), ("Upload-Offset", "4")] + append + ietf(false))
    try client.send(Array("4\r\n".utf8) + Array(pattern(8)[4...]) + Array("\r\n".utf8))
    // If the next request came before these bytes were written, it would end the request that sends them.
    #expect(try eventually { server.folder.sizeOfKept == 8 })
    let rest = [("Upload-Offset", "8")] + append + ietf(false)
    #expect(try server.ask("PATCH", upload, rest, body: Array(pattern(10)[8...])).status == 204)
    let digest = field("Content-Digest", [1])
    try? client.send(Array("0\r\n\(digest.0): \(digest.1)\r\n\r\n".utf8))
    _ = try? client.answer()
    #expect(try server.ask("HEAD", upload)["Upload-Offset"] == "10")
  }

  /// The server cannot verify such a digest, because it has not computed one while the bytes arrived.
  @Test(arguments: ["Content-Digest", "Repr-Digest"], [true, false])
  func aDigestBehindTheBytesMustBeAnnounced(_ name: String, _ isResumable: Bool) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("PUT", "/x", [("Transfer-Encoding", "chunked")] + (isResumable ? ietf(true) : []))
    let digest = field(name, [1])
    try client.send(Array("4\r\n".utf8) + pattern(4) + Array("\r\n0\r\n\(digest.0): \(digest.1)\r\n\r\n".utf8))
    let answer = try client.answer()
    #expect(answer.status == 400)
    #expect(answer.text.contains("must be announced by Trailer"))
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// Sends four bytes in a chunk, followed by this trailer section.
  func sendChunk(
    _ server: TestServer, _ method: String, _ path: String, _ head: [(String, String)], _ trailers: [(String, String)]
  ) throws -> RawHTTPClient.Answer {
    let client = try server.client()
    try client.head(method, path, head + [("Transfer-Encoding", "chunked")])
    let lines = trailers.map { "\($0.0): \($0.1)\r\n" }.joined()
    try client.send(Array("4\r\n".utf8) + pattern(4) + Array("\r\n0\r\n\(lines)\r\n".utf8))
    return try client.answer()
  }

  /// For each protocol, an upload that needs a last append of four bytes, and the fields of that append.
  func appends(_ server: TestServer) throws -> [(upload: String, head: [(String, String)])] {
    let resumable = try #require(
      try server.ask("PUT", "/x", ietf(false) + [("Upload-Length", "4")], body: [])["Location"])
    let offset = ("Upload-Offset", "0")
    return [
      (resumable, [offset] + append + ietf(true)),
      (try server.create("y", length: 4), [tus, offset, ("Content-Type", "application/offset+octet-stream")]),
    ]
  }
}
