import Blobs
import TestSupport
import Testing

struct PutTests {
  @Test(arguments: [0, 1, 5, 131_072, 1_000_003])
  func putCreatesTheFile(_ size: Int) throws {
    let server = try TestServer()
    let bytes = pattern(size)
    let answer = try server.ask("PUT", "/a.bin", body: bytes)
    #expect(answer.status == 201)
    #expect(answer["ETag"] != nil)
    #expect(server.folder.read("a.bin") == bytes)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func putOfUnknownLengthWorks() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("PUT", "/c", [("Transfer-Encoding", "chunked")])
    for piece in ["hello ", "chunked ", "world"] {
      try client.send(Array("\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n".utf8))
    }
    try client.send(Array("0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
    #expect(server.folder.read("c") == Array("hello chunked world".utf8))
  }

  @Test func putMakesTheFoldersAbove() throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/a/b/c.txt", body: [1]).status == 201)
    #expect(try server.ask("PUT", "/a/b2/c.txt", body: [2]).status == 201)
    #expect(server.folder.read("a/b/c.txt") == [1])
  }

  @Test func namesAreBytes() throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/%FF%20%C3%A4%25", body: [7]).status == 201)
    #expect(server.folder.read(BytePath([0xFF, 0x20, 0xC3, 0xA4, 0x25])) == [7])
    #expect(try server.ask("PUT", "/.hidden", body: [7]).status == 201)
  }

  @Test func equalBytesUnderTheNameCountAsStored() throws {
    let server = try TestServer()
    let bytes = pattern(600_000)
    #expect(try server.ask("PUT", "/a", body: bytes).status == 201)
    #expect(try server.ask("PUT", "/a", body: bytes).status == 204)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func otherBytesOfTheSameLengthAreRefused() throws {
    let server = try TestServer()
    let bytes = pattern(600_000)
    var other = bytes
    other[599_999] ^= 1
    #expect(try server.ask("PUT", "/a", body: bytes).status == 201)
    let answer = try server.ask("PUT", "/a", body: other)
    #expect(answer.status == 409)
    #expect(answer.text.contains("/a exists with other bytes"))
    #expect(server.folder.read("a") == bytes)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func anotherLengthIsRefusedBeforeTheBody() throws {
    let server = try TestServer()
    server.folder.write("a", [1, 2, 3])
    let client = try server.client()
    try client.head("PUT", "/a", [("Content-Length", "5000000000"), ("Expect", "100-continue")])
    let answer = try client.readHead()
    #expect(answer.status == 409)
  }

  @Test func chunkedBytesOfAnotherLengthAreRefused() throws {
    let server = try TestServer()
    server.folder.write("a", [1, 2, 3])
    let client = try server.client()
    try client.head("PUT", "/a", [("Transfer-Encoding", "chunked")])
    try client.send(Array("1\r\nx\r\n0\r\n\r\n".utf8))
    #expect(try client.answer().status == 409)
    #expect(server.folder.read("a") == [1, 2, 3])
  }

  @Test func ifMatchReplaces() throws {
    let server = try TestServer()
    let first = try server.ask("PUT", "/a", body: [1])
    #expect(try server.ask("PUT", "/a", [("If-Match", "*")], body: [2, 3]).status == 204)
    #expect(server.folder.read("a") == [2, 3])
    let stale = try server.ask("PUT", "/a", [("If-Match", first["ETag"]!)], body: [4])
    #expect(stale.status == 412)
    let now = try server.ask("HEAD", "/a")
    #expect(try server.ask("PUT", "/a", [("If-Match", now["ETag"]!)], body: [4]).status == 204)
  }

  /// RFC 9110 §13.1.1: the condition is false if there is no current representation.
  @Test(arguments: [[], [("Upload-Complete", "?1")]])
  func ifMatchIsFalseWhereNothingIs(_ more: [(String, String)]) throws {
    let server = try TestServer()
    for tag in ["\"a\"", "*"] {
      #expect(try server.ask("PUT", "/new", [("If-Match", tag)] + more, body: [5]).status == 412, "\(tag)")
    }
    #expect(server.folder.read("new") == nil)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func putHeedsEveryPrecondition() throws {
    let server = try TestServer()
    let etag = try #require(try server.ask("PUT", "/a", body: [1])["ETag"])
    let (old, late) = ("Mon, 01 Jan 2001 00:00:00 GMT", "Tue, 01 Jan 2999 00:00:00 GMT")
    for header in [
      ("If-Unmodified-Since", old), ("If-None-Match", etag), ("If-None-Match", "W/" + etag), ("If-None-Match", "*"),
    ] {
      for more in [[], [("Upload-Complete", "?1")], [("If-None-Match", "\"b\"")]] {
        #expect(try server.ask("PUT", "/a", [header] + more, body: [1]).status == 412, "\(header) \(more)")
      }
    }
    for header in [("If-Unmodified-Since", late), ("If-None-Match", "\"b\""), ("If-Unmodified-Since", "soon")] {
      #expect(try server.ask("PUT", "/a", [header], body: [1]).status == 204, "\(header)")
    }
    #expect(try server.ask("PUT", "/a", [("If-Match", etag), ("If-Unmodified-Since", old)], body: [2]).status == 204)
    #expect(try server.ask("PUT", "/b", [("If-Unmodified-Since", old)], body: [1]).status == 201)
  }

  /// Sends five of the ten bytes of a resumable upload to /a, for the version with this ETag, and returns its URL.
  private func beginDraft(_ server: TestServer, _ etag: String) throws -> String {
    let client = try server.client()
    try client.head(
      "POST", "/a",
      [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?0"), ("If-Match", etag), ("Content-Length", "5")])
    #expect(try client.readHead().status == 104)
    try client.send(pattern(5))
    return try #require(try client.answer()["Location"])
  }

  private func endDraft(_ server: TestServer, _ upload: String) throws -> RawHTTPClient.Answer {
    let head = [
      ("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1"), ("Upload-Offset", "5"),
      ("Content-Type", "application/partial-upload"),
    ]
    return try server.ask("PATCH", upload, head, body: pattern(5))
  }

  /// Another client replaces or deletes the version while the first one is still sending.
  @Test(arguments: [true, false]) func ifMatchHoldsWhenTheBytesArePublished(isDeleted: Bool) throws {
    let server = try TestServer { $0.allowsDelete = true }
    let etag = try #require(try server.ask("PUT", "/a", body: [1])["ETag"])
    let slow = try server.client()
    try slow.head("PUT", "/a", [("If-Match", etag), ("Content-Length", "10")])
    try slow.send(pattern(5))
    let upload = try beginDraft(server, etag)
    #expect(try server.ask(isDeleted ? "DELETE" : "PUT", "/a", [("If-Match", etag)], body: [7]).status == 204)
    try slow.send(pattern(5))
    #expect(try slow.answer().status == 412)
    #expect(try endDraft(server, upload).status == 412)
    #expect(server.folder.read("a") == (isDeleted ? nil : [7]))
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func aRecordKeepsTheVersionThatIfMatchNames() throws {
    let server = try TestServer()
    let etag = try #require(try server.ask("PUT", "/a", body: [1])["ETag"])
    let upload = try beginDraft(server, etag)
    server.server.stop(grace: .zero)
    let again = try TestServer(over: server.folder)
    #expect(try again.ask("PUT", "/a", [("If-Match", "*")], body: [7]).status == 204)
    #expect(try endDraft(again, upload).status == 412)
    #expect(again.folder.read("a") == [7])
  }

  @Test func ifNoneMatchKeepsWhatIsThere() throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/a", [("If-None-Match", "*")], body: [1]).status == 201)
    #expect(try server.ask("PUT", "/a", [("If-None-Match", "*")], body: [1]).status == 412)
  }

  @Test func aCutPutLeavesNothing() throws {
    let server = try TestServer()
    do {
      let client = try server.client()
      try client.head("PUT", "/cut", [("Content-Length", "1000000")])
      try client.send(pattern(500_000))
      #expect(try eventually { !server.folder.kept.isEmpty })
    }
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(server.folder.read("cut") == nil)
  }

  @Test func twoAtOnceNeverMix() throws {
    let server = try TestServer()
    let one = pattern(300_000)
    let two = pattern(300_000, seed: 1)
    let first = try server.client()
    let second = try server.client()
    for client in [first, second] { try client.head("PUT", "/a", [("Content-Length", "300000")]) }
    try first.send(Array(one.prefix(100_000)))
    try second.send(Array(two.prefix(200_000)))
    try first.send(Array(one.dropFirst(100_000)))
    #expect(try first.answer().status == 201)
    try second.send(Array(two.dropFirst(200_000)))
    #expect(try second.answer().status == 409)
    #expect(server.folder.read("a") == one)
  }

  @Test func foldersAndRangesAreNoPutTargets() throws {
    let server = try TestServer()
    server.folder.makeFolder("d")
    server.folder.write("f", [1])
    #expect(try server.ask("PUT", "/", body: [1]).status == 409)
    #expect(try server.ask("PUT", "/new/", body: [1]).status == 409)
    #expect(try server.ask("PUT", "/d", body: [1]).status == 409)
    #expect(try server.ask("PUT", "/f/below", body: [1]).status == 409)
    #expect(try server.ask("PUT", "/x", [("Content-Range", "bytes 0-0/2")], body: [1]).status == 400)
  }

  @Test func tooLargeIsRefusedAtTheHeadOrOnTheWay() throws {
    let server = try TestServer { $0.maxSize = 1000 }
    #expect(try server.ask("PUT", "/a", body: pattern(1000)).status == 201)
    #expect(try server.ask("PUT", "/b", body: pattern(1001)).status == 413)
    let early = try server.client()
    try early.head("PUT", "/c", [("Content-Length", "100000000")])
    #expect(try early.answer().status == 413)
    let chunked = try server.client()
    try chunked.head("PUT", "/d", [("Transfer-Encoding", "chunked")])
    try chunked.send(Array("7d0\r\n".utf8) + pattern(2000))
    #expect(try chunked.answer().status == 413)
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(server.folder.read("d") == nil)
  }

  @Test func maxTotalCountsWhatIsThereAndWhatComes() throws {
    let folder = try TestFolder()
    folder.write("old", pattern(600))
    let server = try TestServer(over: folder) { $0.maxTotal = 1000 }
    #expect(try server.ask("PUT", "/a", body: pattern(401)).status == 507)
    #expect(try server.ask("PUT", "/a", body: pattern(400)).status == 201)
    #expect(try server.ask("PUT", "/b", body: pattern(1)).status == 507)
    #expect(try server.ask("PUT", "/a", [("If-Match", "*")], body: []).status == 204)
    #expect(try server.ask("PUT", "/b", body: pattern(300)).status == 201)
  }

  @Test func connectionsAreKeptAcrossAnswers() throws {
    let server = try TestServer()
    let client = try server.client()
    #expect(try client.ask("PUT", "/a", body: [1]).status == 201)
    #expect(try client.ask("PUT", "/a", body: [1, 2]).status == 409)
    #expect(try client.ask("GET", "/nothing").status == 404)
    #expect(try client.ask("GET", "/a").body == [1])
    #expect(try client.ask("DELETE", "/a").status == 405)
    #expect(try client.ask("HEAD", "/a").status == 200)
    #expect(try client.ask("PUT", "/b", body: pattern(200_000)).status == 201)
  }
}
