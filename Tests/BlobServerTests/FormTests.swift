import BlobHTTP
import BlobServer
import Blobs
import Platform
import Synchronization
import Testing

/// Forms as browsers and `curl -F` send them.
struct FormTests {
  private let type = ("Content-Type", "multipart/form-data; boundary=B")

  private func part(_ name: String, _ bytes: [UInt8], file: String? = nil) -> [UInt8] {
    let file = file.map { "; filename=\"\($0)\"" } ?? ""
    return Array("--B\r\nContent-Disposition: form-data; name=\"\(name)\"\(file)\r\n\r\n".utf8) + bytes + [13, 10]
  }
  private func openFiles() -> Int { TestFolder.names("/proc/self/fd").count }
  private let close = Array("--B--\r\n".utf8)

  @Test func filesOfAFormArePublished() throws {
    let server = try TestServer()
    let bytes = pattern(3_000_000)
    let body =
      part("title", Array("Trip".utf8)) + part("f", bytes, file: "a b.jpg") + part("f", [], file: "empty")
      + part("g", [1, 2, 3], file: "\u{e4}%22.jpg") + close
    let answer = try server.ask("POST", "/new/folder/", [type], body: body)
    #expect(answer.status == 201)
    #expect(answer["Content-Type"] == "application/json")
    #expect(answer.text.contains(#""url":"/new/folder/a%20b.jpg""#))
    #expect(server.folder.read("new/folder/a b.jpg") == bytes)
    #expect(server.folder.read("new/folder/empty") == [])
    #expect(server.folder.read("new/folder/\u{e4}\".jpg") == [1, 2, 3])
    #expect(server.folder.kept.isEmpty)
    #expect(TestFolder.names(server.folder.path.appending("new/folder")).count == 3)
  }

  @Test func aFormMayComeInChunks() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("POST", "/", [type, ("Transfer-Encoding", "chunked")])
    for byte in part("f", [13, 10, 45, 45], file: "x") + close {
      try client.send(Array("1\r\n".utf8) + [byte] + Array("\r\n".utf8))
    }
    try client.send(Array("0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
    #expect(server.folder.read("x") == [13, 10, 45, 45])
    // The connection can be reused.
    #expect(try client.ask("GET", "/x").body == [13, 10, 45, 45])
  }

  /// Backslashes are ordinary bytes of a name, as browsers and Fullbore's client send them.
  @Test(arguments: [#"a\x.jpg"#, #"back\slash"#, #"q"uo\te"#, #"end\"#, #"\"#, #"a\\b"#, "a\r\nb", #"\"\"#])
  func aNameArrivesWhole(_ name: String) throws {
    let server = try TestServer()
    var form = MultipartForm()
    form.appendPart([1, 2, 3], name: "file", fileName: name)
    let reader = try form.open(at: 0, Cancellation())
    var body = [UInt8](repeating: 0, count: 4096)
    var length = 0
    while true {
      let count = try body.withUnsafeMutableBytes {
        try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[length...]))
      }
      if count == 0 { break }
      length += count
    }
    let answer = try server.ask("POST", "/", [("Content-Type", form.contentType)], body: Array(body[..<length]))
    #expect(answer.status == 201, "\(answer.text)")
    #expect(server.folder.read(BytePath(name)) == [1, 2, 3], "\(TestFolder.names(server.folder.path))")
  }

  @Test func aBrowserIsSentBackToTheFolder() throws {
    let server = try TestServer()
    let accept = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
    let origin = ("Origin", "http://localhost")
    let answer = try server.ask("POST", "/sub/", [type, accept, origin], body: part("f", [1], file: "x") + close)
    #expect(answer.status == 303)
    #expect(answer["Location"] == "/sub/")
    server.folder.write("y", [1, 2])
    let refused = try server.ask("POST", "/", [type, accept, origin], body: part("f", [1], file: "y") + close)
    #expect(refused.status == 409)
    #expect(refused["Content-Type"]?.hasPrefix("text/html") == true)
    #expect(refused.text.contains("<b>y</b>"))
  }

  @Test func thePageHasAForm() throws {
    let form = "<form method=\"post\" enctype=\"multipart/form-data\">"
    let server = try TestServer()
    let page = try server.ask("GET", "/")
    #expect(page.text.contains(form))
    #expect(page["Content-Security-Policy"]?.contains("form-action 'self'") == true)
    #expect(try !TestServer { $0.isReadOnly = true }.ask("GET", "/").text.contains("<form"))
    let closed = try TestServer { $0.token = "secret" }
    #expect(try closed.ask("GET", "/", [("Authorization", "Bearer secret")]).text.contains("<form"))
  }

  /// A problem with one file does not affect the others.
  @Test func aFormIsAnsweredWithTheResultOfEachFile() throws {
    let server = try TestServer { $0.maxSize = 1000 }
    server.folder.write("same", [1])
    server.folder.write("other", [2])
    server.folder.makeFolder("folder")
    let body =
      part("f", [1], file: "same") + part("f", [1], file: "other") + part("f", [1], file: "folder")
      + part("f", pattern(1001), file: "large") + part("f", [1], file: "..") + part("f", [1], file: ".fullbore")
      + part("f", pattern(1000), file: "right") + close
    let answer = try server.ask("POST", "/", [type], body: body)
    #expect(answer.status == 409)
    #expect(server.folder.read("right") == pattern(1000))
    #expect(server.folder.read("large") == nil)
    #expect(server.folder.read("other") == [2])
    for status in [200, 201, 400, 403, 409, 413] { #expect(answer.text.contains("\"status\":\(status)"), "\(status)") }
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// The files up to the limit are stored. The response comes after the whole form and says what was left out.
  @Test func theResponseToAFormWithTooManyFilesNamesTheStoredOnes() throws {
    let server = try TestServer()
    let body = Array((0..<1003).map { part("f", [1], file: $0 == 1001 ? "late" : "x") }.joined()) + close
    let client = try server.client()
    let answer = try client.ask("POST", "/", [type], body: body)
    #expect(answer.status == 413)
    #expect(answer.text.contains("\"leftOut\":3,\"error\":\"a form may bring 1000 files at most"))
    #expect(answer.text.split(separator: "\"name\":").count == 1001)
    #expect(server.folder.read("x") == [1])
    #expect(server.folder.read("late") == nil)
    let page = try client.ask("POST", "/", [type, ("Accept", "text/html")], body: body)
    #expect(page.status == 413)
    #expect(page.text.contains("<b>3 more files</b>"))
    #expect(try eventually { server.folder.kept.isEmpty })
    // Fields without a file do not count.
    let fields = Array((0..<2000).map { part("n", Array("\($0)".utf8)) }.joined()) + part("f", [2], file: "y") + close
    #expect(try client.ask("POST", "/", [type], body: fields).status == 201)
  }

  /// A form's files that wait for a worker are closed meanwhile.
  @Test func aFormOfManyFilesHasFewOfThemOpen() throws {
    let server = try TestServer()
    let body = Array((0..<1000).map { part("f", pattern(500), file: "\($0)") }.joined()) + close
    let client = try server.client()
    let most = Atomic(0)
    let isOver = Atomic(false)
    SystemThread.start("counts") { [self] in
      while !isOver.load(ordering: .relaxed) {
        most.store(max(most.load(ordering: .relaxed), openFiles()), ordering: .relaxed)
      }
    }
    let before = openFiles()
    #expect(try client.ask("POST", "/", [type], body: body).status == 201)
    isOver.store(true, ordering: .relaxed)
    #expect(most.load(ordering: .relaxed) - before < 100)
  }

  @Test func twoFilesOfOneNameAreOneOrAConflict() throws {
    let server = try TestServer()
    let twice = part("f", [1], file: "x") + part("f", [1], file: "x") + close
    #expect(try server.ask("POST", "/", [type], body: twice).status == 201)
    let other = part("f", [1], file: "y") + part("f", [2], file: "y") + close
    #expect(try server.ask("POST", "/", [type], body: other).status == 409)
    #expect([[1], [2]].contains(server.folder.read("y")))
  }

  @Test func conditionsHoldForEveryFile() throws {
    let server = try TestServer()
    server.folder.write("x", [1])
    let body = part("f", [2], file: "x") + close
    #expect(try server.ask("POST", "/", [type], body: body).status == 409)
    #expect(try server.ask("POST", "/", [type, ("If-None-Match", "*")], body: body).status == 412)
    #expect(try server.ask("POST", "/", [type, ("If-Match", "*")], body: body).status == 200)
    #expect(server.folder.read("x") == [2])
  }

  @Test func aFieldThatWasLeftEmptyIsNoFile() throws {
    let server = try TestServer()
    #expect(try server.ask("POST", "/", [type], body: part("f", [], file: "") + close).status == 400)
    #expect(try server.ask("POST", "/", [type], body: part("f", [1], file: "") + close).status == 400)
    let body = part("f", [], file: "") + part("g", [1], file: "x") + close
    #expect(try server.ask("POST", "/", [type], body: body).status == 201)
    #expect(server.folder.kept.isEmpty)
  }

  // MARK: Malformed forms

  @Test func aFormCutAtAnyByteKeepsWholeFilesOnly() throws {
    let server = try TestServer()
    let body = part("f", pattern(20), file: "a") + part("f", pattern(20), file: "b") + close
    for count in stride(from: 0, to: body.count - 3, by: 3) {
      for name in ["a", "b"] { server.folder.remove(BytePath(name)) }
      // Sends the form first as a complete body, then as one that is cut off.
      #expect(try server.ask("POST", "/", [type], body: Array(body.prefix(count))).status == 400, "\(count)")
      let client = try server.client()
      try client.head("POST", "/", [type, ("Content-Length", "\(body.count)")])
      try client.send(Array(body.prefix(count)))
      client.finishSending()
      #expect(client.isClosedByServer())
      #expect(try eventually { server.folder.kept.isEmpty }, "\(count): \(server.folder.kept)")
      // "a" is complete only with the whole boundary line after it; no such line follows "b".
      #expect([nil, pattern(20)].contains(server.folder.read("a")), "\(count)")
      #expect(server.folder.read("b") == nil, "\(count)")
    }
  }

  @Test(arguments: [
    "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
    "multipart/form-data; boundary=a@b",
  ]) func aFormNeedsABoundary(_ type: String) throws {
    let server = try TestServer()
    let answer = try server.ask("POST", "/", [("Content-Type", type)], body: part("f", [1], file: "x") + close)
    #expect(answer.status == 400)
    #expect(server.folder.kept.isEmpty)
  }

  /// A line that starts like the boundary but is not one may belong to the file, which is then incomplete.
  @Test(arguments: ["--Bx\r\n", "--B-x\r\n", "--B\rx", "--B \n", "--B  -"])
  func aBadFormEndsTheFileThatIsUnderWay(_ line: String) throws {
    let server = try TestServer()
    let bad = part("f", pattern(100_000), file: "a") + Array(line.utf8)
    let client = try server.client()
    try client.head("POST", "/", [type, ("Content-Length", "10000000")])
    try client.send(part("f", [7], file: "first") + bad)
    #expect(try client.answer().status == 400)
    // "first" was complete before that. Once it is stored and no upload is in progress, "a" cannot appear any more.
    #expect(try eventually { server.folder.kept.isEmpty && server.folder.read("first") == [7] })
    #expect(server.folder.read("a") == nil)
  }

  @Test func formsAreForFolders() throws {
    let server = try TestServer()
    let body = part("f", [1], file: "x") + close
    server.folder.write("file", [2])
    // 409 would say that the name is taken, and a client would offer to replace the file.
    for path in ["/nothing", "/file"] {
      let refused = try server.ask("POST", path, [type], body: body)
      #expect(refused.status == 400 && refused.text.contains("ends with a slash"), "\(refused.text)")
    }
    server.folder.makeFolder("sub")
    #expect(try server.ask("POST", "/sub", [type], body: body).status == 201)
    #expect(server.folder.read("sub/x") == [1])
    #expect(try TestServer { $0.isReadOnly = true }.ask("POST", "/", [type], body: body).status == 405)
  }

  /// Other web sites can make a browser send a form without asking the user.
  @Test func pagesElsewhereMayNotSendForms() throws {
    let server = try TestServer()
    let body = part("f", [1], file: "x") + close
    for foreign in [
      ("Origin", "https://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"),
      ("Sec-Fetch-Site", "same-site"),
    ] { #expect(try server.ask("POST", "/", [type, foreign], body: body).status == 403, "\(foreign)") }
    #expect(server.folder.read("x") == nil)
    #expect(try server.ask("POST", "/", [type, ("Sec-Fetch-Site", "same-origin")], body: body).status == 201)
    let open = try TestServer { $0.allowedOrigins = ["https://app.example"] }
    let allowed = [type, ("Origin", "https://app.example"), ("Sec-Fetch-Site", "cross-site")]
    #expect(try open.ask("POST", "/", allowed, body: body).status == 201)
  }

  @Test func roomIsCountedWhileAFormComes() throws {
    let server = try TestServer { $0.maxTotal = 1000 }
    let body = part("f", pattern(900), file: "a") + part("f", pattern(900), file: "b") + close
    #expect(try server.ask("POST", "/", [type], body: body).status == 507)
    #expect(server.folder.read("a") == pattern(900))
    #expect(server.folder.read("b") == nil)
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(try server.ask("POST", "/", [type], body: part("f", pattern(100), file: "c") + close).status == 201)
  }
}
