import BlobHTTP
import BlobServer
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

/// A folder as an archive. Tests/Robustness/archives.py opens archives with other programs.
struct ArchiveTests {
  private func bytes(_ folder: String, _ server: TestServer, _ headers: [(String, String)] = []) throws -> [UInt8] {
    let answer = try server.ask("GET", folder, headers)
    #expect(answer.status == 200 && answer["Content-Length"] == "\(answer.body.count)")
    return answer.body
  }

  private func hasText(_ bytes: [UInt8], _ text: String) -> Bool {
    String(decoding: bytes, as: Unicode.ASCII.self).contains(text)
  }

  @Test(arguments: ["zip", "tar"]) func anArchiveHasEachFileBelowTheFolder(_ format: String) throws {
    let server = try TestServer()
    server.folder.makeFolder("2026")
    server.folder.makeFolder("2026/sub")
    server.folder.makeFolder("2026/empty")
    let photo = pattern(100_000)
    server.folder.write("2026/a.jpg", photo)
    server.folder.write("2026/sub/none", [])
    server.folder.write("2026/.hidden", [1])
    server.folder.link("2026/link", to: "a.jpg")
    server.folder.write("outside", Array("outside".utf8))
    _ = try server.create("unfinished", length: 10, in: "/2026/")
    let answer = try server.ask("GET", "/2026/?archive=\(format)")
    #expect(answer.status == 200)
    #expect(answer["Content-Type"] == (format == "zip" ? "application/zip" : "application/x-tar"))
    #expect(answer["Content-Disposition"] == "attachment; filename=\"2026.\(format)\"; filename*=UTF-8''2026.\(format)")
    #expect(answer["Accept-Ranges"] == "bytes" && answer["X-Content-Type-Options"] == "nosniff")
    #expect(answer["Content-Length"] == "\(answer.body.count)")
    for name in ["2026/", "2026/a.jpg", "2026/sub/", "2026/sub/none", "2026/empty/"] {
      #expect(hasText(answer.body, name), "\(name)")
    }
    for name in ["hidden", "link", "outside", "fullbore", "unfinished"] {
      #expect(!hasText(answer.body, name), "\(name)")
    }
    let head = try server.client()
    try head.head("HEAD", "/2026/?archive=\(format)")
    let only = try head.answer(hasBody: false)
    #expect(only["Content-Length"] == answer["Content-Length"] && only["ETag"] == answer["ETag"])
    let etag = try #require(answer["ETag"])
    #expect(try server.ask("GET", "/2026/?archive=\(format)", [("If-None-Match", etag)]).status == 304)
  }

  /// Whichever ranges are asked for, they are pieces of the same archive, also if the server has no checksums yet.
  @Test(arguments: ["zip", "tar"]) func rangesArePiecesOfTheWhole(_ format: String) throws {
    let folder = try TestFolder()
    for number in 0..<7 { folder.write(BytePath("f\(number)"), pattern(number * number * 9000, seed: number)) }
    folder.makeFolder("ü")
    folder.write("ü/日本", pattern(70_000))
    let whole = try bytes("/?archive=\(format)", TestServer(over: folder))
    var random = SystemRandomNumberGenerator()
    for _ in 0..<6 {
      let server = try TestServer(over: folder)
      for _ in 0..<8 {
        let start = Int.random(in: 0..<whole.count, using: &random)
        let end = Int.random(in: start..<whole.count, using: &random)
        let answer = try server.ask("GET", "/?archive=\(format)", [("Range", "bytes=\(start)-\(end)")])
        #expect(answer.status == 206 && answer["Content-Range"] == "bytes \(start)-\(end)/\(whole.count)")
        #expect(answer.body == Array(whole[start...end]), "\(start)-\(end)")
      }
      let last = try server.ask("GET", "/?archive=\(format)", [("Range", "bytes=-30")])
      #expect(last.body == Array(whole.suffix(30)))
      #expect(try server.ask("GET", "/?archive=\(format)", [("Range", "bytes=\(whole.count)-")]).status == 416)
    }
  }

  @Test(arguments: ["zip", "tar"]) func aRangeNeverContinuesAnotherState(_ format: String) throws {
    let server = try TestServer()
    server.folder.write("a", pattern(5000))
    let path = "/?archive=\(format)"
    let first = try server.ask("GET", path)
    let etag = try #require(first["ETag"])
    let part = [("Range", "bytes=100-"), ("If-Range", etag)]
    #expect(try server.ask("GET", path, part).status == 206)
    let same = [("Range", "bytes=100-"), ("If-Match", etag)]
    #expect(try server.ask("GET", path, same).status == 206)
    server.folder.write("b", [1])
    #expect(try server.ask("GET", path, same).status == 412)
    let second = try server.ask("GET", path, part)
    #expect(second.status == 200 && second["ETag"] != etag)
    server.folder.remove("b")
    server.folder.write("a", pattern(5000, seed: 1))
    let third = try server.ask("GET", path, part)
    #expect(third.status == 200 && third["ETag"] != etag)
    #expect(try server.ask("GET", path, [("Range", "bytes=100-"), ("If-Range", "W/\(etag)")]).status == 200)
  }

  /// The client sees a connection that ends early, and the operator a line.
  @Test(arguments: ["changed", "truncated", "gone", "replaced"]) func aFileThatChangesEndsTheConnection(_ way: String)
    throws
  {
    let lines = Mutex<[String]>([])
    let server = try TestServer { options in options.notice = { line in lines.withLock { $0.append(line) } } }
    server.folder.write("a", [1])
    #expect(server.folder.extend("a", to: 200 << 20))
    server.folder.write("b", pattern(1000))
    let client = try server.client()
    try client.head("GET", "/?archive=tar")
    client.readSome(100_000)
    usleep(20_000)  // the clock of file systems has a resolution of some milliseconds
    switch way {
    case "changed": server.folder.write("b", pattern(1000, seed: 1))
    case "truncated": #expect(server.folder.extend("a", to: 1000))
    case "gone": server.folder.remove("b")
    default: server.folder.rename("b", to: "a")
    }
    let got = client.readToEnd().count
    #expect(got < 200 << 20 + 2048)
    #expect(try eventually { lines.withLock { $0.contains { $0.contains("ended early") } } })
    #expect(try server.ask("GET", "/?archive=tar").status == 200)
  }

  @Test func aFileThatCannotBeReadIsNotLeftOut() throws {
    if geteuid() == 0 { return }
    let server = try TestServer()
    server.folder.write("secret", [1])
    server.folder.path.appending("secret").withCString { _ = chmod($0, 0) }
    let answer = try server.ask("GET", "/?archive=zip")
    #expect(answer.status == 403 && answer.text.contains("'secret' cannot be read"))
  }

  @Test func anArchiveThatIsTooDeepNamesTheFolder() throws {
    let server = try TestServer()
    let names = (0..<16).map { "\($0)" + String(repeating: "x", count: 200) }
    server.folder.makeFolder("s")
    // The path of the folder itself is too long for one call.
    var place = open("\(server.folder.path)/s", O_RDONLY | O_DIRECTORY)
    for name in names {
      mkdirat(place, name, 0o755)
      let inner = openat(place, name, O_RDONLY | O_DIRECTORY)
      close(place)
      place = inner
    }
    close(place)
    let answer = try server.ask("GET", "/?archive=tar")
    #expect(answer.status == 413, "\(answer.text)")
    #expect(answer.text.contains("no archive of the folder") && answer.text.contains("'s/0xxx"), "\(answer.text)")
    #expect(try server.ask("GET", "/s/?archive=tar").status == 413)
  }

  /// The operator finds the file by its path.
  @Test func aFileThatIsGoneIsNamedWithItsFolder() throws {
    let lines = Mutex<[String]>([])
    let server = try TestServer { options in options.notice = { line in lines.withLock { $0.append(line) } } }
    server.folder.makeFolder("s")
    server.folder.write("s/a", pattern(16 << 20))
    server.folder.write("s/z", [1])
    let client = try server.client()
    try client.head("GET", "/s/?archive=tar")
    #expect(try eventually { server.server.activity.requests == 1 })
    usleep(300_000)
    server.folder.remove("s/z")
    _ = try? client.answer()
    #expect(try eventually { lines.withLock { !$0.isEmpty } })
    #expect(lines.withLock { $0.first?.contains("/s/z") } == true, "\(lines.withLock { $0 })")
  }

  @Test func aClientThatMayNotReadFilesGetsNoArchive() throws {
    for reading in [ServerOptions.Reading.nothing, .names] {
      let server = try TestServer { $0.reading = reading }
      server.folder.write("a", [1])
      #expect(try server.ask("GET", "/?archive=zip").status == 403)
      if reading == .names {
        #expect(try server.ask("GET", "/", [("Accept", "application/json")]).text.contains("\"archive\":null"))
      }
    }
  }

  @Test func aTicketIsForTheArchiveOfOneFolder() throws {
    let server = try TestServer {
      $0.token = "secret"
      $0.page = ServerOptions.BrowserPage(name: "Photos")
    }
    server.folder.makeFolder("a")
    server.folder.makeFolder("a/b")
    server.folder.write("a/x", [1])
    func ticket(_ folder: String) throws -> String {
      let list = try server.ask("GET", folder, [("Authorization", "Bearer secret"), ("Accept", "application/json")])
        .text
      return String(try #require(list.firstMatch(of: /"archive":"\.\/\?archive=zip&(ticket=[0-9a-f]+)"/)?.1))
    }
    let (top, inner) = (try ticket("/"), try ticket("/a/"))
    let browser = ("Accept", "text/html")
    for path in ["/?archive=zip&\(top)", "/?\(top)&archive=tar", "/a/?archive=zip&\(inner)"] {
      let answer = try server.ask("GET", path, [browser])
      #expect(answer.status == 200 && answer["Content-Disposition"]?.hasPrefix("attachment") == true, "\(path)")
    }
    let json = ("Accept", "application/json")
    for path in [
      "/?archive=zip", "/a/?archive=zip&\(top)", "/a/b/?archive=zip&\(inner)", "/?\(top)", "/a/?\(inner)",
      "/a/x?\(inner)", "/a/x?archive=zip&\(inner)", "/a?archive=zip&\(inner)", "/?archive=zip&ticket=",
      "/?archive=zip&\(top)&\(top)", "/a/..?archive=zip&\(inner)", "/.fullbore/?archive=zip&\(top)",
    ] {
      let status = try server.ask("GET", path, [json]).status
      #expect(status == 401, "\(path) \(status)")
    }
    #expect(try server.ask("PUT", "/a/?archive=zip&\(inner)", body: []).status == 401)
    let root = try server.ask("GET", "/?archive=zip&\(top)")
    #expect(root["Content-Disposition"] == "attachment; filename=\"Photos.zip\"; filename*=UTF-8''Photos.zip")
  }

  /// Other inputs are refused, or are a list as before.
  @Test(arguments: [
    ("/?archive=", 400), ("/?archive=rar", 400), ("/?archive=ZIP", 400), ("/?archive=%zz", 400),
    ("/?archive=zip&archive=zip", 400), ("/?archive=zip%00", 400), ("/?archive", 200), ("/?xarchive=zip", 200),
    ("/none/?archive=zip", 404), ("/a?archive=zip", 200), ("/.fullbore/?archive=zip", 403), ("/a/?archive=zip", 404),
    ("/?a&&=&archive=tar&", 200),
  ]) func queriesAreTakenLiterally(_ path: String, _ status: Int) throws {
    let server = try TestServer()
    server.folder.write("a", [1])
    #expect(try server.ask("GET", path).status == status)
    #expect(try server.ask("GET", "/a").status == 200)
  }

  @Test(arguments: [
    "bytes=", "bytes=-", "bytes=5-2", "bytes=0-0,2-3", "bytes=a-b", "lines=0-1", "bytes=99999999999999999999-",
    "bytes=-99999999999999999999", "bytes=0-99999999999999999999", "bytes=-0", "bytes=+1-2",
  ]) func rangesOfAnArchiveAreThoseOfAFile(_ range: String) throws {
    let server = try TestServer()
    server.folder.makeFolder("sub")
    server.folder.write("sub/a", [1])
    let whole = try bytes("/sub/?archive=zip", server)
    server.folder.write(".whole", whole)
    let (archive, file) = (
      try server.ask("GET", "/sub/?archive=zip", [("Range", range)]),
      try server.ask("GET", "/.whole", [("Range", range)])
    )
    #expect(archive.status == file.status && archive["Content-Range"] == file["Content-Range"])
    if archive.status < 300 { #expect(archive.body == file.body) }
  }

  @Test func longFilesAreOnlyRefusedBeyondAllArchives() throws {
    let server = try TestServer()
    for name in ["a", "b"] {
      server.folder.write(BytePath(name), [])
      if !server.folder.extend(BytePath(name), to: 1 << 43) { return }  // not with every file system
    }
    let answer = try server.ask("GET", "/?archive=tar", [("Range", "bytes=\((1 << 43) + 512)-\((1 << 43) + 2000)")])
    #expect(answer.status == 206 && answer.body.count == 1489)
  }
}
