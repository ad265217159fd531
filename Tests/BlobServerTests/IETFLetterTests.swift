import BlobServer
import Blobs
import TestSupport
import Testing

/// Requirements of draft-ietf-httpbis-resumable-upload-12, the final form, which has no interop version.
struct IETFLetterTests {
  @Test func aPATCHWithoutUploadCompleteIsABadRequest() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    let head = [("Upload-Offset", "0"), ("Content-Type", "application/partial-upload")]
    for more in [[], [("Upload-Complete", "1")], [("Upload-Complete", "?2")], [("Upload-Complete", "\"?1\"")]] {
      #expect(try server.ask("PATCH", upload, head + more, body: [1]).status == 400, "\(more)")
    }
    #expect(try server.ask("HEAD", upload)["Upload-Offset"] == "0")
  }

  /// RFC 9651: a value that is not a Boolean makes the recipient ignore the whole field.
  @Test(arguments: ["1", "true", "?2", "", "?1, ?1", "?0, ?0", "\"?0\"", "?0?", "?0\u{301}"])
  func anUploadCompleteThatIsNoBooleanIsIgnored(_ value: String) throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", [("Upload-Complete", value)], body: [1, 2])
    #expect(answer.status == 201)
    #expect(answer["Upload-Complete"] == nil)
    #expect(server.folder.read("x") == [1, 2])
    #expect(server.folder.kept.isEmpty)
    let posted = try server.ask("POST", "/y", [("Upload-Complete", value)], body: [1])
    #expect(posted.status == 201 && posted["Upload-Complete"] == nil, "as any other POST")
  }

  @Test func aFieldThatStandsTwiceIsIgnored() throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", [("Upload-Complete", "?1"), ("Upload-Complete", "?1")], body: [1, 2])
    #expect(answer.status == 201)
    #expect(server.folder.read("x") == [1, 2])
  }

  @Test func parametersOfABooleanArePassedOver() throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", [("Upload-Complete", "?1;a=1;b")], body: [1, 2])
    #expect(answer["Upload-Complete"] == "?1")
  }

  /// With and without `Content-Length`, and whether or not the request completes the upload.
  @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
  func aBodyPastTheLengthEndsTheUpload(hasLength: Bool, isLast: Bool) throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 5)
    #expect(try append(server, upload, at: 0, [1, 2], isLast: false).status == 204)
    let client = try server.client()
    let framing = hasLength ? ("Content-Length", "4") : ("Transfer-Encoding", "chunked")
    try client.head("PATCH", upload, patch(2, isLast: isLast) + [framing])
    let chunks: [UInt8] = [52, 13, 10, 3, 4, 5, 6, 13, 10, 48, 13, 10, 13, 10]
    try client.send(hasLength ? [3, 4, 5, 6] : chunks)
    let answer = try client.answer()
    #expect(answer.status == 409)
    #expect(answer["Upload-Complete"] == "?0")
    #expect(try eventually { try server.ask("HEAD", upload).status == 404 })
    #expect(try append(server, upload, at: 2, [3], isLast: false).status == 404)
    #expect(try append(server, upload, at: 5, [], isLast: true).status == 404)
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func aQuestionWithAnOffsetIsABadRequest() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: 10)
    for field in [("Upload-Offset", "0"), ("Upload-Complete", "?0"), ("Upload-Complete", "?1")] {
      #expect(try server.ask("HEAD", upload, [field]).status == 400, "\(field)")
    }
    let version3 = [("Upload-Draft-Interop-Version", "3"), ("Upload-Incomplete", "?1")]
    #expect(try server.ask("HEAD", upload, version3).status == 400)
    #expect(try server.ask("HEAD", upload).status == 204)
  }

  @Test func theURLAnswersAfterTheEnd() throws {
    let server = try TestServer()
    let upload = try create(server, "/x", length: nil)
    #expect(try append(server, upload, at: 0, [1, 2, 3], isLast: true).status == 201)
    try checkFinished(server, upload, length: 3)
  }

  /// Only the interim response contains the upload's URL in this case; small bodies are received without a record.
  @Test(arguments: [3, 300_000, 4_300_000]) func theURLAnswersWhereTheCreationWasTheWhole(length: Int) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head(
      "POST", "/x",
      [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1"), ("Content-Length", "\(length)")])
    let upload = try #require(try client.readHead()["Location"])
    try client.send([UInt8](repeating: 7, count: length))
    #expect(try client.answer().status == 201)
    try checkFinished(server, upload, length: length)
  }

  @Test func theURLAnswersWhereChunksBroughtTheWhole() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head(
      "POST", "/x",
      [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1"), ("Transfer-Encoding", "chunked")])
    let upload = try #require(try client.readHead()["Location"])
    try client.send(Array("3\r\nabc\r\n0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
    try checkFinished(server, upload, length: 3)
  }

  private func checkFinished(_ server: TestServer, _ upload: String, length: Int) throws {
    for _ in 1...2 {
      let asked = try server.ask("HEAD", upload)
      #expect(asked.status == 204)
      #expect(asked["Upload-Complete"] == "?1")
      #expect(asked["Upload-Offset"] == "\(length)")
      #expect(asked["Upload-Length"] == "\(length)")
    }
    #expect([204, 404].contains(try server.ask("DELETE", upload).status))
    #expect([404, 410].contains(try server.ask("HEAD", upload).status))
    #expect(try server.ask("DELETE", upload).status == 404)
    #expect(server.folder.read("x")?.count == length, "the file stays")
  }

  @Test func anUnknownUploadIsNotFound() throws {
    let server = try TestServer()
    for id in ["0123456789abcdef0123456789abcdef", "x", "", "0123456789ABCDEF0123456789ABCDEF", "a/b"] {
      let upload = "/.fullbore-upload/\(id)"
      #expect(try server.ask("DELETE", upload).status == 404)
      #expect(try server.ask("HEAD", upload).status == 404)
      #expect(try append(server, upload, at: 0, [1], isLast: true).status == 404)
    }
  }

  @Test func optionsNameTheMediaType() throws {
    let server = try TestServer()
    #expect(try server.ask("OPTIONS", "/").headers.list("Accept-Patch").contains("application/partial-upload"))
  }

  @Test func aRefusalOfALargeUploadContainsTheLimit() throws {
    let server = try TestServer { $0.maxSize = 100 }
    let creation = try server.ask("POST", "/x", [("Upload-Complete", "?0"), ("Upload-Length", "101")])
    #expect(creation.status == 413)
    #expect(creation["Upload-Limit"]?.contains("max-size=100") == true)
    let upload = try create(server, "/x", length: nil)
    let answer = try append(server, upload, at: 0, pattern(101), isLast: false)
    #expect(answer.status == 413)
    #expect(answer["Upload-Limit"]?.contains("max-size=100") == true)
  }

  private func create(_ server: TestServer, _ path: String, length: Int?) throws -> String {
    let size = length.map { [("Upload-Length", "\($0)")] } ?? []
    let answer = try server.ask("POST", path, [("Upload-Complete", "?0")] + size, body: [])
    try #require(answer.status == 201)
    return try #require(answer["Location"])
  }

  private func append(
    _ server: TestServer, _ upload: String, at offset: Int, _ bytes: [UInt8], isLast: Bool
  ) throws -> RawHTTPClient.Answer {
    try server.ask("PATCH", upload, patch(offset, isLast: isLast), body: bytes)
  }

  private func patch(_ offset: Int, isLast: Bool) -> [(String, String)] {
    [
      ("Upload-Complete", isLast ? "?1" : "?0"), ("Upload-Offset", "\(offset)"),
      ("Content-Type", "application/partial-upload"),
    ]
  }
}
