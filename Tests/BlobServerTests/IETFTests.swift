import BlobCrypto
import BlobServer
import Blobs
import TestSupport
import Testing

/// Tests for draft-ietf-httpbis-resumable-upload with raw bytes.
struct IETFTests {
  let bytes = pattern(1_000_000)

  @Test(arguments: [3, 4, 5, 6, 7, 8]) func aWholeBodyIsTakenAndItsURLToldBefore(version: Int) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("POST", "/a/b.jpg", ietf(true, version) + [("Content-Length", "\(bytes.count)")])
    let interim = try client.readHead()
    #expect(interim.status == 104)
    #expect(interim["Upload-Draft-Interop-Version"] == "\(version)")
    #expect(interim["Location"]?.hasPrefix("/.fullbore-upload/") == true)
    #expect((interim["Upload-Limit"] != nil) == (version >= 6))
    #expect(interim["Upload-Limit"]?.hasPrefix(version == 6 ? "expires=" : "max-age=") ?? true)
    try client.send(bytes)
    let answer = try client.answer()
    #expect(answer.status == 201)
    #expect(answer[version == 3 ? "Upload-Incomplete" : "Upload-Complete"] == (version == 3 ? "?0" : "?1"))
    #expect(answer["Location"] == "/a/b.jpg")
    #expect(server.folder.read("a/b.jpg") == bytes)
    #expect(try client.ask("GET", "/a/b.jpg").body == bytes, "the connection goes on")
  }

  @Test func theFinalFormHasNoInterimAnswer() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("PUT", "/x", [("Upload-Complete", "?1"), ("Content-Length", "3")])
    try client.send([1, 2, 3])
    let answer = try client.readHead()
    #expect(answer.status == 201)
    #expect(answer["Upload-Complete"] == "?1")
    #expect(server.folder.read("x") == [1, 2, 3])
  }

  @Test(arguments: ["2", "9", "8.0", "x", "-8"]) func anotherVersionMakesItAPlainRequest(version: String) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head(
      "PUT", "/x",
      [("Upload-Draft-Interop-Version", version), ("Upload-Complete", "?1"), ("Content-Length", "3")])
    try client.send([1, 2, 3])
    let answer = try client.readHead()
    #expect(answer.status == 201)
    #expect(answer["Upload-Complete"] == nil)
    #expect(server.folder.read("x") == [1, 2, 3])
  }

  @Test func partsBecomeTheWhole() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: bytes.count)
    let first = try append(server, upload, at: 0, Array(bytes[..<400_000]), isLast: false)
    #expect(first.status == 204)
    #expect(first["Upload-Complete"] == "?0")
    #expect(first["Upload-Offset"] == "400000")
    #expect(server.folder.read("x") == nil)
    let asked = try server.ask("HEAD", upload, version8)
    #expect(asked.status == 204)
    #expect(asked["Upload-Offset"] == "400000")
    #expect(asked["Upload-Complete"] == "?0")
    #expect(asked["Upload-Length"] == "1000000")
    #expect(asked["Upload-Limit"]?.hasPrefix("max-age=") == true)
    #expect(asked["Cache-Control"] == "no-store")
    let last = try append(server, upload, at: 400_000, Array(bytes[400_000...]), isLast: true)
    #expect(last.status == 201)
    #expect(last["Upload-Complete"] == "?1")
    #expect(server.folder.read("x") == bytes)
    #expect(try server.ask("HEAD", upload, version8)["Upload-Complete"] == "?1")
  }

  @Test func theLastAppendSetsTheLengthOfAnUpload() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: nil)
    #expect(try append(server, upload, at: 0, Array(bytes[..<10]), isLast: false).status == 204)
    #expect(try server.ask("HEAD", upload, version8)["Upload-Length"] == nil)
    let client = try server.client()
    try client.head("PATCH", upload, patch(10, isLast: true) + [("Transfer-Encoding", "chunked")])
    try client.send(Array("5\r\n".utf8) + bytes[10..<15] + Array("\r\n0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
    #expect(server.folder.read("x") == Array(bytes[..<15]))
  }

  /// A client that sends without a length, and asks for them, gets interim responses with the offset, so that it can
  /// release the bytes that have arrived. Since version 5.
  @Test(arguments: [3, 4, 5, 6, 7, 8]) func interimResponsesReportTheOffsetOfABodyOfUnknownLength(version: Int) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("POST", "/x", ietf(true, version) + asksForInterim + [("Transfer-Encoding", "chunked")])
    #expect(try client.readHead()["Location"] != nil)
    let piece = pattern(1 << 20)
    var told: [Int] = []
    for number in 1...4 {
      try client.send(Array("100000\r\n".utf8) + piece + Array("\r\n".utf8))
      if version < 5 { continue }
      let interim = try client.readHead()
      #expect(interim.status == 104 && interim["Upload-Draft-Interop-Version"] == "\(version)")
      let offset = try #require(interim["Upload-Offset"].flatMap { Int($0) })
      #expect(offset > told.last ?? 0 && offset <= number << 20)
      told.append(offset)
    }
    try client.send(Array("0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
    #expect(server.folder.read("x") == piece + piece + piece + piece)
  }

  /// Interim offsets are not sent for a body with a length, nor for one that counts only with its digest.
  @Test func otherBodiesGetNoInterimOffsets() throws {
    let server = try TestServer()
    let bytes = pattern(3 << 20)
    for (number, more) in [
      [("Content-Length", "\(bytes.count)")], [("Transfer-Encoding", "chunked"), ("Trailer", "Content-Digest")],
    ].enumerated() {
      let client = try server.client()
      try client.head("POST", "/\(number)", ietf(true) + asksForInterim + more)
      #expect(try client.readHead().status == 104)
      let digest = "Content-Digest: sha-256=:\(base64(Digest.value(of: bytes, .sha256))):"
      try client.send(
        number == 0 ? bytes : Array("300000\r\n".utf8) + bytes + Array("\r\n0\r\n\(digest)\r\n\r\n".utf8))
      #expect(try client.readHead().status == 201)
    }
  }

  @Test func anEmptyAppendFinishes() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: nil)
    #expect(try append(server, upload, at: 0, [1, 2], isLast: false).status == 204)
    #expect(try append(server, upload, at: 2, [], isLast: true).status == 201)
    #expect(server.folder.read("x") == [1, 2])
    let again = try append(server, upload, at: 2, [], isLast: true)
    #expect(again.status == 204, "a lost answer is given again")
    #expect(again["Upload-Complete"] == "?1")
  }

  @Test(arguments: [100_000, 900_000]) func aCutCreationGoesOnWhereItWas(cut: Int) throws {
    let folder = try TestFolder()
    let bytes = pattern(8_000_000)
    var location = ""
    do {
      let server = try TestServer(over: folder)
      let client = try server.client()
      try client.head("POST", "/x", ietf(true) + [("Content-Length", "\(bytes.count)")])
      location = try #require(try client.readHead()["Location"])
      try client.send(Array(bytes[..<cut]))
      #expect(try eventually { folder.sizeOfKept == cut })
    }
    let server = try TestServer(over: folder)
    #expect(try server.ask("HEAD", location, version8)["Upload-Offset"] == "\(cut)")
    #expect(try append(server, location, at: cut, Array(bytes[cut...]), isLast: true).status == 201)
    #expect(folder.read("x") == bytes)
  }

  @Test func aSmallCreationThatIsCutIsRemembered() throws {
    let server = try TestServer()
    var location = ""
    do {
      let client = try server.client()
      try client.head("POST", "/x", ietf(true) + [("Content-Length", "1000")])
      location = try #require(try client.readHead()["Location"])
      try client.send(Array(bytes[..<600]))
      #expect(try eventually { server.folder.sizeOfKept == 600 })
    }
    #expect(try eventually { try server.ask("HEAD", location, version8)["Upload-Offset"] == "600" })
    #expect(try append(server, location, at: 600, Array(bytes[600..<1000]), isLast: true).status == 201)
    #expect(server.folder.read("x") == Array(bytes[..<1000]))
  }

  @Test func anInterruptedUploadThatCannotBeResumedIsDeleted() throws {
    let server = try TestServer()
    do {
      let client = try server.client()
      try client.head("POST", "/x", [("Upload-Complete", "?1"), ("Content-Length", "1000")])
      try client.send(Array(bytes[..<600]))
      #expect(try eventually { server.folder.sizeOfKept == 600 })
    }
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func aFormNamesTheFileInAFolder() throws {
    let server = try TestServer()
    server.folder.makeFolder("in")
    let names = [
      (#"inline; filename="a b.jpg""#, "a b.jpg"), (#"attachment; filename=plain.jpg"#, "plain.jpg"),
      (#"inline; filename="x.jpg"; filename*=UTF-8''%C3%A9t%C3%A9.jpg"#, "été.jpg"),
      (#"inline; filename="../../etc/passwd""#, "passwd"),
      (#"inline; filename="a_x.jpg"; filename*=UTF-8''a%5Cx.jpg"#, #"a\x.jpg"#),
    ]
    for (field, name) in names {
      let client = try server.client()
      try client.head("POST", "/in", ietf(true) + [("Content-Disposition", field), ("Content-Length", "1")])
      try client.send([7])
      #expect(try client.readHead().status == 104)
      #expect(try client.answer().status == 201)
      #expect(server.folder.read(BytePath("in/\(name)")) == [7])
    }
  }

  @Test func deletingEndsIt() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    #expect(try server.ask("DELETE", upload, version8).status == 204)
    #expect(try server.ask("HEAD", upload, version8).status == 410)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func otherBytesUnderTheNameAreTheLastWord() throws {
    let server = try TestServer()
    server.folder.write("x", [1, 2, 3])
    let upload = try create(server, "/x", length: nil)
    let answer = try append(server, upload, at: 0, [4, 5, 6], isLast: true)
    #expect(answer.status == 409)
    #expect(answer["Upload-Complete"] == "?1", "asking again would change nothing")
    #expect(server.folder.read("x") == [1, 2, 3])
  }

  @Test func optionsHasTheUploadLimits() throws {
    let server = try TestServer { $0.maxSize = 1000 }
    #expect(try server.ask("OPTIONS", "/")["Upload-Limit"] == "max-size=1000, max-age=86400")
  }

  // MARK: Requests that must be rejected

  @Test func anotherOffset() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    #expect(try append(server, upload, at: 0, [1, 2], isLast: false).status == 204)
    let answer = try append(server, upload, at: 3, [4], isLast: false)
    #expect(answer.status == 409)
    #expect(answer["Upload-Offset"] == "2")
    #expect(answer["Upload-Complete"] == "?0")
    #expect(answer["Content-Type"] == "application/problem+json")
    #expect(answer.text.contains("#mismatching-upload-offset"))
    #expect(answer.text.contains(#""expected-offset":2"#) && answer.text.contains(#""provided-offset":3"#))
  }

  @Test(arguments: ["", "-1", "1.5", "x", "\"1\"", "1000000000000000"]) func noOffset(field: String) throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    let head =
      version8 + [
        ("Upload-Offset", field), ("Upload-Complete", "?0"), ("Content-Type", "application/partial-upload"),
      ]
    #expect(try server.ask("PATCH", upload, head, body: [1]).status == 400)
  }

  // MARK: Requests

  func create(_ server: TestServer, _ path: String, length: Int?) throws -> String {
    let client = try server.client()
    let size = length.map { [("Upload-Length", "\($0)")] } ?? []
    try client.head("POST", path, ietf(false) + size + [("Content-Length", "0")])
    let interim = try client.readHead()
    #expect(interim.status == 104)
    let answer = try client.answer()
    #expect(answer.status == 201)
    #expect(answer["Upload-Complete"] == "?0")
    #expect(answer["Location"] == interim["Location"])
    return try #require(answer["Location"])
  }

  func append(
    _ server: TestServer, _ upload: String, at offset: Int, _ bytes: [UInt8], isLast: Bool
  ) throws -> RawHTTPClient.Answer {
    try server.ask("PATCH", upload, patch(offset, isLast: isLast), body: bytes)
  }

  func patch(_ offset: Int, isLast: Bool) -> [(String, String)] {
    ietf(isLast) + [("Upload-Offset", "\(offset)"), ("Content-Type", "application/partial-upload")]
  }
}

/// A proxy would remove the first field, and the one that it names.
let asksForInterim = [("Connection", "Upload-Interim"), ("Upload-Interim", "?1")]

let version8 = [("Upload-Draft-Interop-Version", "8")]

func ietf(_ isLast: Bool, _ version: Int = 8) -> [(String, String)] {
  let complete =
    version == 3 ? ("Upload-Incomplete", isLast ? "?0" : "?1") : ("Upload-Complete", isLast ? "?1" : "?0")
  return [("Upload-Draft-Interop-Version", "\(version)"), complete]
}
