import BlobServer
import Blobs
import Platform
import Testing

/// Paths and folder trees that are far deeper than usual.
struct DeepTreeTests {
  private static let deep = [String](repeating: "d", count: 1330).joined(separator: "/")

  @Test func aPathOfTooManyFoldersIsRefused() throws {
    let server = try TestServer { $0.allowsDelete = true }
    let path = "/\(Self.deep)/x"
    #expect(try server.ask("PUT", path, body: [1]).status == 414)
    #expect(try server.ask("GET", path).status == 414)
    #expect(try server.ask("DELETE", path).status == 414)
    let metadata = ("Upload-Metadata", "relativePath \(base64(String(path.dropFirst())))")
    #expect(try server.ask("POST", "/", [tus, ("Upload-Length", "1"), metadata], body: []).status == 414)
    #expect(try server.ask("POST", "/\(Self.deep)/", [tus, ("Upload-Length", "1")], body: []).status == 414)
    #expect(try server.ask("PUT", path, [("Upload-Complete", "?1")], body: [1]).status == 414)
    let form = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n1\r\n--B--\r\n"
    let type = ("Content-Type", "multipart/form-data; boundary=B")
    #expect(try server.ask("POST", "/\(Self.deep)/", [type], body: Array(form.utf8)).status == 414)
    #expect(try server.ask("PUT", "/x", body: [1]).status == 201, "the server is still there")
    #expect(TestFolder.names(server.folder.path).sorted() == [".fullbore", "x"])
  }

  @Test func foldersAreMadeAsDeepAsAPathMayBe() throws {
    let server = try TestServer()
    let path = [String](repeating: "d", count: 255).joined(separator: "/") + "/x"
    #expect(try server.ask("PUT", "/\(path)", body: [1, 2]).status == 201)
    #expect(try server.ask("GET", "/\(path)").body == [1, 2])
    #expect(try server.ask("PUT", "/d/\(path)", body: [1]).status == 414)
    server.folder.write("file", [1])
    #expect(try server.ask("PUT", "/file/a/b", body: [1]).status == 409)
    server.folder.link("link", to: "/tmp")
    #expect(try server.ask("PUT", "/link/a/b", body: [1]).status == 403)
  }

  /// An older server accepted such paths, and left the upload to be published at the next start.
  @Test func aRecordThatCannotBePublishedIsSetAside() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    let records = [
      "fullbore upload 1\ntarget \(Self.deep)/x\nexisting keep\nlength 3\nmetadata \n", "nonsense", "",
      "fullbore upload 1\ntarget ../../etc/x\nexisting keep\nlength 3\nmetadata \n",
      "fullbore upload 2\ntarget a\nexisting keep\nlength 3\nmetadata \nconcat final;x\nend\n",
    ]
    for (number, record) in records.enumerated() {
      let id = "\(number)" + String(repeating: "0", count: 31)
      folder.write(BytePath(".fullbore/\(id).info"), Array(record.utf8))
      folder.write(BytePath(".fullbore/\(id).data"), [1, 2, 3])
    }
    let good = "a" + String(repeating: "0", count: 31)
    folder.write(
      BytePath(".fullbore/\(good).info"),
      Array("fullbore upload 1\ntarget good\nexisting keep\nlength 3\nmetadata \n".utf8))
    folder.write(BytePath(".fullbore/\(good).data"), [1, 2, 3])
    for round in 1...2 {
      let server = try TestServer(over: folder) { $0.maxTotal = 1 << 20 }
      #expect(server.server.notices.count == (round == 1 ? records.count : 0), "each is said once")
      #expect(server.server.notices.allSatisfy { $0.contains(".info is no record") && $0.contains(".bad") })
      #expect(try eventually { folder.read("good") == [1, 2, 3] })
      #expect(try server.ask("PUT", "/x", body: [1]).status / 100 == 2)
    }
    func count(_ ending: String) -> Int { folder.kept.filter { $0.hasSuffix(ending) }.count }
    #expect(count(".data") == records.count && count(".bad") == records.count, "their bytes are kept until they expire")
    for name in folder.kept { folder.age(BytePath(".fullbore/\(name)"), seconds: 100_000) }
    let server = try TestServer(over: folder) { $0.expire = .seconds(1000) }
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// Files in the store that no server has created do not prevent the server from starting either.
  @Test func aStoreThatIsDamagedIsServed() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    func id(_ digit: Character) -> String { String(repeating: digit, count: 32) }
    folder.makeFolder(BytePath(".fullbore/\(id("1")).info"))
    folder.link(BytePath(".fullbore/\(id("2")).info"), to: "/etc/passwd")
    folder.link(BytePath(".fullbore/\(id("3")).data"), to: "/etc/passwd")
    folder.write(BytePath(".fullbore/\(id("3")).5.mark"), [])
    folder.makeFolder(BytePath(".fullbore/\(id("4")).data"))
    folder.write(BytePath(".fullbore/\(id("4")).0.mark"), [])
    folder.write(
      BytePath(".fullbore/\(id("4")).info"),
      Array("fullbore upload 1\ntarget a\nexisting keep\nlength 3\nmetadata \n".utf8))
    folder.write(BytePath(".fullbore/\(id("5")).join"), [])
    folder.link(BytePath(".fullbore/\(id("5")).info"), to: "/etc/passwd")
    folder.makeFolder(".fullbore/stranger")
    for _ in 1...2 {
      let server = try TestServer(over: folder) { $0.maxTotal = 1 << 20 }
      #expect(!server.server.notices.isEmpty)
      #expect(try server.ask("PUT", "/x", body: [1]).status / 100 == 2)
    }
  }

  /// A final upload that is its own part, and two that are parts of each other.
  @Test func recordsThatNameEachOtherEnd() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    func id(_ digit: Character) -> String { String(repeating: digit, count: 32) }
    for (final, part) in [("1", "1"), ("2", "3"), ("3", "2")] as [(Character, Character)] {
      let record = """
        fullbore upload 2
        target file\(final)
        existing keep
        length unknown
        metadata \n\
        concat final;/.fullbore-upload/\(id(part))
        end

        """
      folder.write(BytePath(".fullbore/\(id(final)).info"), Array(record.utf8))
      folder.write(BytePath(".fullbore/\(id(final)).join"), [])
    }
    let server = try TestServer(over: folder) { $0.maxTotal = 1 << 20 }
    for digit in ["1", "2", "3"] as [Character] {
      let upload = "/.fullbore-upload/\(id(digit))"
      _ = try server.ask("HEAD", upload, [tus])
      _ = try server.ask("DELETE", upload, [tus])
    }
    #expect(try server.ask("PUT", "/x", body: [1]).status == 201)
  }

  @Test func aDeepTreeIsMeasured() throws {
    let folder = try TestFolder()
    try makeChain(of: 1500, in: folder)
    // Runs on a thread with a small stack, as `fullbore serve` does.
    let started = Monitor<Result<TestServer, any Error>?>(nil)
    SystemThread.start("start") {
      nonisolated(unsafe) let server = Result { try TestServer(over: folder) { $0.maxTotal = 1000 } }
      started.update { $0 = server }
    }
    let server = try started.wait { $0 }.get()
    // While the server measures the tree again, which takes longer than an upload waits, it asks to come again.
    var refused = try server.ask("PUT", "/x", body: pattern(991))
    while refused["Retry-After"] != nil { refused = try server.ask("PUT", "/x", body: pattern(991)) }
    #expect(refused.status == 507)
    #expect(refused.text.contains("990 of 1000 are free"), "\(refused.text)")
    #expect(try server.ask("PUT", "/x", body: pattern(990)).status == 201)
  }

  /// Nested folders, far deeper than a path may be long, with ten bytes in the last one.
  private func makeChain(of count: Int, in folder: TestFolder) throws {
    var place = folder.path.withCString { open($0, O_RDONLY | O_DIRECTORY) }
    for _ in 1...count {
      try #require(mkdirat(place, "d", 0o755) == 0)
      let next = openat(place, "d", O_RDONLY | O_DIRECTORY)
      close(place)
      place = next
    }
    let file = openat(place, "file", O_WRONLY | O_CREAT, 0o644)
    try #require(ftruncate(file, 10) == 0)
    close(file)
    close(place)
  }
}
