import BlobServer
import Testing

/// A body that declares to be a part of a file is never published as the whole file.
struct PartialBodyTests {
  private static func version(_ number: Int) -> (String, String) { ("Upload-Draft-Interop-Version", "\(number)") }
  private static let parts: [[(String, String)]] = [
    [version(9), ("Upload-Complete", "?0")], [version(99), ("Upload-Complete", "?0")],
    [version(3), ("Upload-Complete", "?0")],
    [("Upload-Complete", "?0"), ("Upload-Complete", "?1")], [("Upload-Complete", "?0"), ("Upload-Complete", "?0")],
    [tus, ("Upload-Complete", "?0")],
    [version(8), ("Upload-Incomplete", "?1")],
    [version(8), ("Upload-Complete", "?1"), ("Upload-Incomplete", "?1")],
    [("Upload-Offset", "5")], [version(8), ("Upload-Offset", "5")], [("Upload-Offset", "0"), ("Upload-Offset", "5")],
    [("Upload-Complete", "?1"), ("Upload-Offset", "5")], [("Upload-Complete", "?0"), ("Upload-Offset", "5")],
  ]

  @Test(arguments: parts.indices) func aPartIsNotPublished(_ index: Int) throws {
    let server = try TestServer()
    let answer = try server.ask("PUT", "/x", Self.parts[index], body: [1, 2])
    #expect(answer.status == 400, "\(Self.parts[index])")
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// Ranges of a file, in each protocol that can create a file.
  @Test(
    arguments: [
      ("Content-Range", "bytes 5-9/10"), ("Content-Type", "multipart/byteranges; boundary=b"),
      ("Content-Type", "Multipart/ByteRanges"),
    ],
    [
      [], [("Upload-Complete", "?1")], [version(8), ("Upload-Complete", "?1")],
      [version(3), ("Upload-Incomplete", "?0")],
      [("Upload-Complete", "?0")],
    ])
  func aRangeIsNotPublished(_ range: (String, String), _ headers: [(String, String)]) throws {
    let server = try TestServer()
    for method in headers.isEmpty ? ["PUT"] : ["PUT", "POST"] {
      let answer = try server.ask(method, "/x", headers + [range], body: [1, 2])
      #expect(answer.status == 400, "\(method) \(headers) \(range)")
      #expect(server.folder.read("x") == nil)
      #expect(try eventually { server.folder.kept.isEmpty })
    }
  }

  @Test func aRangeInAFormIsNotPublished() throws {
    let server = try TestServer()
    let form = Array("--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\nbytes\r\n--b--\r\n".utf8)
    let head = [("Content-Type", "multipart/form-data; boundary=b"), ("Content-Range", "bytes 0-4/10")]
    #expect(try server.ask("POST", "/", head, body: form).status == 400)
    #expect(server.folder.read("x") == nil)
  }

  @Test func aFormThatIsAPartIsNotPublished() throws {
    let server = try TestServer()
    let form = "--b\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\nbytes\r\n--b--\r\n"
    let head = [("Content-Type", "multipart/form-data; boundary=b"), Self.version(9), ("Upload-Complete", "?0")]
    #expect(try server.ask("POST", "/", head, body: Array(form.utf8)).status == 400)
    #expect(server.folder.read("x") == nil)
  }

  /// These fields do not declare a part.
  @Test(arguments: [
    [("Upload-Offset", "0")], [("Upload-Offset", "five")], [("Upload-Incomplete", "1")],
    [version(9), ("Upload-Complete", "?1")], [version(9), ("Upload-Complete", "0")],
  ])
  func aWholeIsPublished(_ headers: [(String, String)]) throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/x", headers, body: [1, 2]).status == 201, "\(headers)")
    #expect(server.folder.read("x") == [1, 2])
  }

  /// A field declares another total length, or the media type of a part.
  @Test(arguments: [
    [("Upload-Length", "5")], [("Upload-Length", "1")], [version(99), ("Upload-Length", "5")],
    [("Upload-Length", "2"), ("Upload-Length", "5")],
    [("Upload-Length", "two")], [("Upload-Length", "-1")], [("Upload-Length", "1, 2")], [("Upload-Length", "2, 2")],
    [("Upload-Length", "")], [("Upload-Length", "2.0")], [("Upload-Length", "2"), ("Upload-Length", "two")],
    [("Content-Type", "application/partial-upload")], [("Content-Type", "Application/Partial-Upload; x=y")],
    [("Content-Type", "application/offset+octet-stream")],
    [("Content-Type", "multipart/byteranges; boundary=b")], [("Content-Type", "Multipart/ByteRanges")],
    [("Content-Type", "text/plain"), ("Content-Type", "multipart/byteranges; boundary=b")],
  ])
  func aBodyThatIsNotTheWholeIsNotPut(_ headers: [(String, String)]) throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/x", headers, body: [1, 2]).status == 400, "\(headers)")
    let client = try server.client()
    try client.head("PUT", "/x", headers + [("Transfer-Encoding", "chunked")])
    try client.send([50, 13, 10, 1, 2, 13, 10, 48, 13, 10, 13, 10])
    #expect(try client.answer().status == 400, "\(headers), in chunks")
    #expect(server.folder.read("x") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test(arguments: [
    [("Upload-Length", "2")], [("Upload-Length", "2"), ("Upload-Length", "2")], [("Content-Type", "text/plain")],
    [("Content-Type", "multipart/mixed; boundary=b")],
  ])
  func aWholeIsPut(_ headers: [(String, String)]) throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/x", headers, body: [1, 2]).status == 201, "\(headers)")
    let client = try server.client()
    try client.head("PUT", "/y", headers + [("Transfer-Encoding", "chunked")])
    try client.send([50, 13, 10, 1, 2, 13, 10, 48, 13, 10, 13, 10])
    #expect(try client.answer().status == 201, "\(headers), in chunks")
  }
}
