import BlobServer
import Blobs
import TestSupport
import Testing

/// Tests for tus 1.0 §Concatenation.
struct TusConcatenationTests {
  @Test func partsBecomeOneFile() throws {
    let server = try TestServer()
    let bytes = pattern(700_000)
    let parts = try server.parts(bytes, cuts: [0, 100_000, 100_000, 450_001])
    #expect(TestFolder.names(server.folder.path) == [".fullbore"], "a part is published")
    let head = try server.ask("HEAD", parts[0], [tus])
    #expect(head["Upload-Concat"] == "partial")
    #expect(head["Upload-Offset"] == "0")
    let final = try server.join(parts, name: "x")
    #expect(final.status == 201)
    #expect(server.folder.read("x") == bytes)
    let answer = try server.ask("HEAD", try #require(final["Location"]), [tus])
    #expect(answer["Upload-Offset"] == "700000")
    #expect(answer["Upload-Length"] == "700000")
    #expect(answer["Upload-Concat"] == "final;" + parts.joined(separator: " "))
    #expect(answer["Upload-Metadata"] == "filename \(base64("x"))")
    #expect(server.folder.kept.allSatisfy { $0.hasSuffix(".done") || $0.hasSuffix(".join") }, "\(server.folder.kept)")
  }

  @Test func concatenationIsOffered() throws {
    let offered = try TestServer().ask("OPTIONS", "/").headers.list("Tus-Extension")
    #expect(Set(offered).isSuperset(of: ["concatenation", "concatenation-unfinished"]))
  }

  @Test func thePartsOrderIsTheFinalsOne() throws {
    let server = try TestServer()
    let parts = try server.parts([1, 2, 3, 4, 5, 6], cuts: [2, 4])
    let absolute = parts.map { "http://localhost\($0)" }
    #expect(try server.join([absolute[2], parts[0], absolute[1]], name: "x").status == 201)
    #expect(server.folder.read("x") == [5, 6, 1, 2, 3, 4])
  }

  @Test func partsMayEndAfterTheFinalBegins() throws {
    let server = try TestServer()
    let bytes = pattern(3000)
    let parts = try (0..<3).map { try server.createPart(length: $0 == 1 ? nil : 1000) }
    #expect(try server.patch(parts[0], at: 0, Array(bytes[..<1000])).status == 204)
    let final = try #require(try server.join(parts, name: "x")["Location"])
    var answer = try server.ask("HEAD", final, [tus])
    #expect(answer.status == 200)
    #expect(answer["Upload-Offset"] == nil)
    #expect(answer["Upload-Length"] == nil)
    #expect(answer["Upload-Defer-Length"] == nil)
    #expect(try server.patch(parts[2], at: 0, Array(bytes[2000...])).status == 204)
    #expect(server.folder.read("x") == nil)
    #expect(try server.patch(parts[1], at: 0, Array(bytes[1000..<2000]), [("Upload-Length", "1000")]).status == 204)
    answer = try server.ask("HEAD", final, [tus])
    #expect(answer["Upload-Offset"] == "3000")
    #expect(answer["Upload-Length"] == "3000")
    #expect(server.folder.read("x") == bytes)
  }

  /// No request for the final upload is needed: the last byte of the last part completes it.
  @Test func theLastByteOfTheLastPartPublishes() throws {
    let server = try TestServer()
    let parts = [try server.createPart(length: 2), try server.createPart(length: 2)]
    #expect(try server.join(parts, name: "x").status == 201)
    #expect(try server.patch(parts[1], at: 0, [3, 4]).status == 204)
    #expect(try server.patch(parts[0], at: 0, [1, 2]).status == 204)
    #expect(try eventually { server.folder.read("x") == [1, 2, 3, 4] })
  }

  /// Both happen at the same time on two connections: the parts are concatenated exactly once.
  @Test func theLastByteMayComeWhileTheFinalBegins() throws {
    let server = try TestServer()
    let (one, other) = (try server.client(), try server.client())
    for round in 0..<100 {
      let parts = try server.parts([1, 2], cuts: [1]) + [server.createPart(length: 1)]
      let concat = ("Upload-Concat", "final;" + parts.joined(separator: " "))
      let name = ("Upload-Metadata", "filename \(base64("\(round)"))")
      try one.head(
        "PATCH", parts[2], [tus, ("Content-Type", octets), ("Upload-Offset", "0"), ("Content-Length", "1")])
      try other.head("POST", "/", [tus, concat, name, ("Content-Length", "0")])
      try one.send([3])
      #expect(try one.answer().status == 204)
      let final = try other.answer()
      #expect(final.status == 201, "\(final.text)")
      #expect(try server.offset(#require(final["Location"])) == 3)
      #expect(server.folder.read(BytePath("\(round)")) == [1, 2, 3])
    }
  }

  @Test func knownLengthsAddUpBeforeTheBytesCome() throws {
    let server = try TestServer()
    let parts = [try server.createPart(length: 7), try server.createPart(length: 5)]
    let final = try #require(try server.join(parts, name: "x")["Location"])
    let answer = try server.ask("HEAD", final, [tus])
    #expect(answer["Upload-Length"] == "12")
    #expect(answer["Upload-Offset"] == nil)
  }

  @Test func partsMayComeWithTheirCreation() throws {
    let server = try TestServer()
    let head = [tus, ("Content-Type", octets), ("Upload-Concat", "partial")]
    let whole = try server.ask("POST", "/", head + [("Upload-Length", "3")], body: [1, 2, 3])
    #expect(whole.status == 201)
    #expect(whole["Upload-Offset"] == "3")
    let begun = try server.ask("POST", "/", head + [("Upload-Length", "3")], body: [4])
    #expect(begun["Upload-Offset"] == "1")
    let parts = try [#require(whole["Location"]), #require(begun["Location"])]
    #expect(try server.patch(parts[1], at: 1, [5, 6]).status == 204)
    #expect(try server.join(parts, name: "x").status == 201)
    #expect(server.folder.read("x") == [1, 2, 3, 4, 5, 6])
  }

  @Test func aLostAnswerCanBeAskedForAgain() throws {
    let folder = try TestFolder()
    var parts: [String] = []
    var final: String?
    do {
      let server = try TestServer(over: folder)
      parts = try server.parts(pattern(1000), cuts: [300])
      final = try server.join(parts, name: "x")["Location"]
      let again = try server.join(parts, name: "x")
      #expect(again.status == 201)
      #expect(again["Location"] == final)
      #expect(try server.join(parts, name: "y").status == 409)
      #expect(try server.join(parts.reversed(), name: "x").status == 409)
    }
    let server = try TestServer(over: folder)
    #expect(try server.offset(parts[0]) == 300)
    #expect(try server.offset(parts[1]) == 700)
    #expect(try server.join(parts, name: "x")["Location"] == final)
    #expect(server.folder.read("x") == pattern(1000))
  }

  // MARK: Rejected requests

  @Test func wrongFinalsAreRefused() throws {
    let server = try TestServer { $0.maxSize = 100 }
    let parts = try server.parts(pattern(20), cuts: [10])
    let whole = try server.create("whole", length: 3)
    let elsewhere = try server.createPart(length: 1, in: "/sub/")
    let unknown = "/.fullbore-upload/00000000000000000000000000000000"
    let wrong: [(String, [(String, String)], Int)] = [
      ("final;", [], 400), ("final; ", [], 400), ("final", [], 400), ("Partial", [], 400), ("", [], 400),
      ("final;\(parts[0])", [("Upload-Length", "10")], 400),
      ("final;\(parts[0])", [("Upload-Defer-Length", "1")], 400),
      ("final;\(parts[0]) \(parts[0])", [], 400),
      ("final;http://localhost\(parts[0]) \(parts[0])", [], 400),
      ("final;\(parts[0]) \(whole)", [], 400),
      ("final;\(parts[0]) \(elsewhere)", [], 400),
      ("final;\(parts[0]) \(unknown)", [], 404),
      ("final;http://example.org\(unknown)", [], 404),
      ("final;ftp://localhost\(parts[0])", [], 400),
      ("final;\(parts[0])?a", [], 400), ("final;\(parts[0])/", [], 400), ("final;/x", [], 400),
      ("final;\(parts[0].replacing("upload/", with: "upload/%"))", [], 400),
    ]
    for (text, more, status) in wrong {
      let answer = try server.ask("POST", "/", [tus, ("Upload-Concat", text)] + more, body: [])
      #expect(answer.status == status, "\(text) \(more): \(answer.text)")
    }
    let body = try server.ask(
      "POST", "/", [tus, ("Upload-Concat", "final;\(parts[0])"), ("Content-Type", octets)], body: [1])
    #expect(body.status == 400)
    // The rejected requests have claimed no part.
    #expect(try server.join(parts, name: "x").status == 201)
    #expect(server.folder.read("x") == pattern(20))
  }

  /// A proxy may replace `Host` with its own value, so that the client's URLs have another host than the server sees.
  @Test func aPartHasWhateverHostItsClientSees() throws {
    let server = try TestServer()
    let parts = try server.parts(pattern(30), cuts: [10, 20])
    let text = "final;https://photos.example\(parts[0]) //photos.example:8443\(parts[1]) http://localhost:1\(parts[2])"
    let head = [tus, ("Upload-Concat", text), ("Upload-Metadata", "filename \(base64("x"))")]
    let joined = try server.ask("POST", "/", head, body: [])
    #expect(joined.status == 201, "\(joined.text)")
    #expect(server.folder.read("x") == pattern(30))
  }

  @Test func aFinalTakesNoBytes() throws {
    let server = try TestServer()
    let parts = [try server.createPart(length: 2)]
    let final = try #require(try server.join(parts, name: "x")["Location"])
    #expect(try server.patch(final, at: 0, [1]).status == 403)
    #expect(try server.patch(parts[0], at: 0, [1, 2]).status == 204)
    #expect(try server.offset(final) == 2)
    #expect(try server.patch(final, at: 2, [1]).status == 403)
    #expect(server.folder.read("x") == [1, 2])
  }

  @Test func aJoinedPartTakesNoBytes() throws {
    let server = try TestServer()
    let parts = try server.parts([1, 2, 3, 4], cuts: [2])
    #expect(try server.join(parts, name: "x").status == 201)
    #expect(try server.patch(parts[0], at: 2, []).status == 204)
    #expect(try server.patch(parts[0], at: 2, [9]).status == 409)
    #expect(try server.patch(parts[1], at: 0, [9]).status == 409)
    #expect(server.folder.read("x") == [1, 2, 3, 4])
  }

  @Test func theWholeMayNotBeTooLong() throws {
    let server = try TestServer { $0.maxSize = 100 }
    #expect(try server.join([server.createPart(length: 60), server.createPart(length: 41)], name: "x").status == 413)
    let late = [try server.createPart(length: nil), try server.createPart(length: nil)]
    let final = try #require(try server.join(late, name: "x")["Location"])
    for part in late { #expect(try server.patch(part, at: 0, pattern(60), [("Upload-Length", "60")]).status == 204) }
    // The parts are concatenated after the response to the last of them.
    #expect(try eventually { try server.ask("HEAD", final, [tus]).status == 410 })
    #expect(try server.ask("HEAD", late[0], [tus]).status == 410)
  }

  @Test func existingNamesAreKeptFromFinals() throws {
    let server = try TestServer()
    server.folder.write("a", pattern(1000))
    let short = try server.parts(pattern(999), cuts: [500])
    #expect(try server.join(short, name: "a").status == 409)
    let other = try server.parts(pattern(1000, seed: 3), cuts: [500])
    #expect(try server.join(other, name: "a").status == 409)
    #expect(try server.ask("HEAD", other[0], [tus]).status == 410)
    let same = try server.parts(pattern(1000), cuts: [500])
    #expect(try server.join(same, name: "a").status == 201)
    #expect(server.folder.read("a") == pattern(1000))
    // A final upload that was rejected before it began has not changed its parts.
    #expect(try server.join(short, name: "b").status == 201)
    #expect(server.folder.read("b") == pattern(999))
  }

  @Test func partsAreNoBusinessOfTheOtherProtocol() throws {
    let server = try TestServer()
    let part = try server.createPart(length: 3)
    let ietf = ("Upload-Draft-Interop-Version", "8")
    #expect(try server.ask("HEAD", part, [ietf]).status == 404)
    let append = [
      ietf, ("Content-Type", "application/partial-upload"), ("Upload-Offset", "0"), ("Upload-Complete", "?1"),
    ]
    #expect(try server.ask("PATCH", part, append, body: [1, 2, 3]).status == 404)
    #expect(try server.offset(part) == 0)
  }

  // MARK: Limits and expiry

  @Test func partsCountAsUnfinished() throws {
    let server = try TestServer { $0.maxUnfinished = 3 }
    let parts = try (0..<3).map { _ in try server.createPart(length: 1) }
    #expect(
      try server.ask("POST", "/", [tus, ("Upload-Length", "1"), ("Upload-Concat", "partial")], body: []).status == 503)
    for part in parts { #expect(try server.patch(part, at: 0, [7]).status == 204) }
    #expect(try server.join(parts, name: "x").status == 201)
    _ = try server.createPart(length: 1)
  }
}

extension TestServer {
  func createPart(length: Int?, in folder: String = "/") throws -> String {
    let size = length.map { ("Upload-Length", "\($0)") } ?? ("Upload-Defer-Length", "1")
    let answer = try ask("POST", folder, [tus, size, ("Upload-Concat", "partial")], body: [])
    try #require(answer.status == 201, "\(answer.text)")
    return try #require(answer["Location"])
  }

  /// Creates complete parts, with the bytes divided at `cuts`.
  func parts(_ bytes: [UInt8], cuts: [Int]) throws -> [String] {
    try zip([0] + cuts, cuts + [bytes.count]).map { start, end in
      let part = try createPart(length: end - start)
      try #require(patch(part, at: 0, Array(bytes[start..<end])).status == 204)
      return part
    }
  }

  func join(_ parts: some Sequence<String>, name: String) throws -> RawHTTPClient.Answer {
    try ask(
      "POST", "/",
      [
        tus, ("Upload-Concat", "final;" + parts.joined(separator: " ")),
        ("Upload-Metadata", "filename \(base64(name))"),
      ], body: [])
  }
}

/// The store's file for an upload with this URL.
func kept(_ upload: String, _ kind: String) -> BytePath {
  BytePath(".fullbore/\(upload.split(separator: "/").last!).\(kind)")
}
