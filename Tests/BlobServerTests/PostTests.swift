import BlobServer
import Blobs
import TestSupport
import Testing

/// A POST whose body is the file, as upload tasks of URLSession, Shortcuts and `curl --data-binary` send it. The name is
/// in the URL or in `Content-Disposition`.
struct PostTests {
  private let bytes = pattern(300_000)

  @Test func theURLNamesTheFile() throws {
    let server = try TestServer()
    let answer = try server.ask("POST", "/2026/IMG_0001.HEIC", [("Content-Type", "image/heic")], body: bytes)
    #expect(answer.status == 201)
    #expect(answer["Location"] == "/2026/IMG_0001.HEIC")
    #expect(answer["ETag"] != nil)
    #expect(server.folder.read("2026/IMG_0001.HEIC") == bytes)
    #expect(try server.ask("POST", "/2026/IMG_0001.HEIC", body: bytes).status == 204, "the same bytes are there")
    #expect(try server.ask("POST", "/2026/IMG_0001.HEIC", body: [1]).status == 409, "other bytes are not replaced")
    #expect(server.folder.read("2026/IMG_0001.HEIC") == bytes)
  }

  @Test(arguments: [
    (#"attachment; filename="IMG_0001.HEIC""#, "IMG_0001.HEIC"),
    ("attachment; filename=IMG_0001.HEIC", "IMG_0001.HEIC"),
    ("attachment; filename*=UTF-8''Caf%C3%A9%20%E2%98%95.heic", "Café ☕.heic"),
    (#"attachment; filename="plain.heic"; filename*=UTF-8''%F0%9F%8C%8A.heic"#, "🌊.heic"),
    (#"attachment; filename="Café.heic""#, "Café.heic"), (#"inline; FileName = "a b.mov""#, "a b.mov"),
    (#"form-data; name="file"; filename="a.jpg""#, "a.jpg"),
    (#"attachment; filename*=ISO-8859-1''x; filename="y.jpg""#, "y.jpg"),
  ])
  func aHeaderFieldNamesTheFile(field: String, name: String) throws {
    let server = try TestServer()
    server.folder.makeFolder("in")
    for (url, folder) in [("/in", "in/"), ("/", ""), ("/new/folder/", "new/folder/")] {
      let answer = try server.ask("POST", url, [("Content-Disposition", field)], body: [1, 2, 3])
      #expect(answer.status == 201, "\(url)")
      #expect(server.folder.read(BytePath(folder + name)) == [1, 2, 3])
      let location = try #require(answer["Location"])
      #expect(try server.ask("GET", location).body == [1, 2, 3])
    }
  }

  /// Whatever the name is, nothing leaves the folder of the request, and the server does not fail.
  @Test(arguments: [
    ("../../../etc/passwd", "passwd"), ("/etc/passwd", "passwd"), ("a/b/c.jpg", "c.jpg"), ("c.jpg/", "c.jpg"),
    ("..\\\\..\\\\x", #"..\..\x"#), ("C:\\\\x.jpg", #"C:\x.jpg"#), ("...", "..."), (".hidden", ".hidden"), ("..", nil),
    (".", nil), ("a/..", nil), ("", nil), ("/", nil), ("///", nil), (".fullbore", nil), (".FULLBORE-upload", nil),
    (String(repeating: "x", count: 255), String(repeating: "x", count: 255)), (String(repeating: "x", count: 256), nil),
    (String(repeating: "é", count: 128), nil), (String(repeating: "../", count: 300) + "x", "x"),
  ])
  func aHostileNameStaysInItsFolder(name: String, expected: String?) throws {
    try check(#"attachment; filename="\#(name)""#, expected)
  }

  @Test(arguments: [
    ("..%2F..%2Fx", "x"), ("%2e%2e", nil), ("%2E", nil), ("a%00b", nil), ("a%0Ab", "a\nb"), ("%1B%5B2J", "\u{1b}[2J"),
    ("a%zz", nil), ("%FF%FE", nil), ("", nil), ("%7F%08x", "\u{7f}\u{8}x"),
  ])
  func aHostileEncodedNameStaysInItsFolder(name: String, expected: String?) throws {
    try check("attachment; filename*=UTF-8''\(name)", expected)
  }

  /// nil: the name is refused, or is no text.
  private func check(_ field: String, _ expected: String?) throws {
    let server = try TestServer()
    server.folder.makeFolder("in")
    let answer = try server.ask("POST", "/in/", [("Content-Disposition", field)], body: [7])
    let names = TestFolder.names(server.folder.path.appending("in"))
    if let expected {
      #expect(answer.status == 201)
      #expect(names == [BytePath(expected)])
    } else {
      #expect((answer.status == 201) == (names.count == 1))
      #expect(answer.status == 201 || (400...403).contains(answer.status))
    }
    #expect(TestFolder.names(server.folder.path).sorted { $0.description < $1.description } == [".fullbore", "in"])
    #expect(server.folder.kept.isEmpty)
    #expect(try server.ask("GET", "/in/").status == 200, "the folder can be listed")
  }

  /// The slash at the end was forgotten: the file itself is meant, and not one in the folder that nobody has named.
  @Test(arguments: [false, true]) func aFolderOfTheFilesNameIsNotEntered(_ isResumable: Bool) throws {
    let server = try TestServer()
    server.folder.makeFolder("in")
    server.folder.write("in/in", [1])
    let ietf = isResumable ? [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?1")] : []
    for more in [[], [("If-Match", "*")]] {
      let fields = ietf + more + [("Content-Disposition", #"inline; filename="in""#)]
      let answer = try server.ask("POST", "/in", fields, body: [2, 3])
      #expect(answer.status == 409 && answer.text.contains("/in is a folder"), "\(answer.status) \(answer.text)")
      #expect(server.folder.read("in/in") == [1])
    }
    #expect(try eventually { server.folder.kept.isEmpty })
    let into = try server.ask(
      "POST", "/in/", [("Content-Disposition", "inline; filename=in"), ("If-Match", "*")], body: [4])
    #expect(into.status / 100 == 2 && server.folder.read("in/in") == [4])
  }

  @Test func aNameThatIsMissingIsAskedFor() throws {
    let server = try TestServer()
    let answer = try server.ask("POST", "/", [("Content-Type", "image/heic")], body: [1])
    #expect(answer.status == 400)
    #expect(answer.text.contains("Content-Disposition"))
    #expect(try server.ask("PUT", "/in/", [("Content-Disposition", "attachment; filename=x")], body: [1]).status == 409)
  }

  /// What a form of a page sends where nobody has chosen a type for it is no file.
  @Test func fieldsOfAFormAreNoFile() throws {
    let server = try TestServer()
    let type = ("Content-Type", "application/x-www-form-urlencoded")
    #expect(try server.ask("POST", "/x", [type], body: Array("a=1".utf8)).status == 415)
    #expect(server.folder.read("x") == nil)
  }

  /// A page of another site may send text by POST without asking.
  @Test(arguments: [
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"), ("Origin", "https://evil.example"),
  ])
  func pagesOfOtherSitesAreRefused(field: (String, String)) throws {
    let server = try TestServer()
    #expect(try server.ask("POST", "/x", [("Content-Type", "text/plain"), field], body: [1]).status == 403)
    #expect(server.folder.read("x") == nil)
  }

  @Test func aBodyOfUnknownLengthAndADigestAreTakenAsWithPut() throws {
    let server = try TestServer { $0.maxSize = 10 }
    let client = try server.client()
    try client.head("POST", "/x", [("Transfer-Encoding", "chunked")])
    try client.send(Array("3\r\nabc\r\n0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
    #expect(server.folder.read("x") == Array("abc".utf8))
    #expect(try server.ask("POST", "/y", body: [UInt8](repeating: 0, count: 11)).status == 413)
    let wrong = ("Content-Digest", "sha-256=:\(base64([UInt8](repeating: 0, count: 32))):")
    #expect(try server.ask("POST", "/z", [wrong], body: [1]).status == 400)
    #expect(server.folder.read("z") == nil)
  }
}
