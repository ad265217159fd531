import BlobServer
import Testing

/// Properties that a response must not have, depending on its request.
struct HeadAnswerTests {
  private let override = ("X-HTTP-Method-Override", "PATCH")

  /// Bodies up to 64 KiB are read and discarded, larger ones are rejected at once, and the largest go through a pipe.
  @Test(arguments: [0, 10, 100_000, 400_000, 3_000_000], ["?0", "?1"])
  func anAnswerToHEADHasNoBody(_ length: Int, _ isLast: String) throws {
    let server = try TestServer()
    let creation = [("Upload-Complete", "?0"), ("Upload-Length", "5000000")]
    let upload = try #require(try server.ask("PUT", "/x", creation, body: [])["Location"])
    let head = [
      override, ("Upload-Complete", isLast), ("Upload-Offset", "0"), ("Content-Type", "application/partial-upload"),
      ("Content-Digest", "sha-256=:\(base64([UInt8](repeating: 1, count: 32))):"), ("Content-Length", "\(length)"),
    ]
    let client = try server.client()
    try client.head("HEAD", upload, head)
    try? client.send(pattern(length))
    client.finishSending()
    let text = String(decoding: client.readToEnd(), as: UTF8.self)
    #expect(text.hasPrefix("HTTP/1.1 4"), "\(text)")
    #expect(text.hasSuffix("\r\n\r\n") && text.split(separator: "\r\n\r\n").count == 1, "\(text)")
  }

  @Test func aLargeBodyToHEADIsRefusedWithoutOne() throws {
    let server = try TestServer { $0.maxSize = 2_000_000 }
    let upload = try #require(try server.ask("PUT", "/x", [("Upload-Complete", "?0")], body: [])["Location"])
    let head = [
      override, ("Upload-Complete", "?1"), ("Upload-Offset", "0"), ("Content-Type", "application/partial-upload"),
      ("Upload-Length", "1000000"), ("Content-Length", "900000"),
    ]
    let client = try server.client()
    try client.head("HEAD", upload, head)
    try? client.send(pattern(900_000))
    client.finishSending()
    let text = String(decoding: client.readToEnd(), as: UTF8.self)
    #expect(text.hasPrefix("HTTP/1.1 400") && text.hasSuffix("\r\n\r\n"), "\(text)")
  }

  @Test func anOlderClientGetsNoInterimAnswer() throws {
    let server = try TestServer()
    let version = "Upload-Draft-Interop-Version: 8\r\nUpload-Complete: ?1\r\n"
    let client = try server.client()
    try client.send(
      Array("PUT /x HTTP/1.0\r\nHost: localhost\r\n\(version)Content-Length: 3\r\n\r\n".utf8) + [1, 2, 3])
    let text = String(decoding: client.readToEnd(), as: UTF8.self)
    #expect(text.split(separator: " ").dropFirst().first == "201", "\(text)")
    #expect(server.folder.read("x") == [1, 2, 3])
  }

  /// The response gives the length of the file or none, and never has a body. RFC 9110 §8.6.
  @Test(arguments: ["GET", "HEAD"]) func anUnchangedFileHasTheLengthOfTheFile(_ method: String) throws {
    let server = try TestServer()
    server.folder.write("x", pattern(3000))
    let client = try server.client()
    let tag = try #require(try client.ask("HEAD", "/x")["ETag"])
    for _ in 0..<2 {
      try client.head(method, "/x", [("If-None-Match", tag)])
      let answer = try client.readHead()
      #expect(answer.status == 304)
      #expect([nil, "3000"].contains(answer["Content-Length"]))
    }
    #expect(try client.ask("GET", "/x").body == pattern(3000))
  }

  @Test func theEndOfAnEmptyFileIsTheWholeOfIt() throws {
    let server = try TestServer()
    server.folder.write("x", [])
    #expect(try server.ask("GET", "/x", [("Range", "bytes=-5")]).status == 200)
    #expect(try server.ask("GET", "/x", [("Range", "bytes=-0")]).status == 416)
    #expect(try server.ask("GET", "/x", [("Range", "bytes=0-")]).status == 416)
  }
}
