import BlobHTTP
import BlobServer
import Blobs
import Platform
import Synchronization
import TestSupport
import Testing

/// The page for browsers, and what it asks the server.
struct SharePageTests {
  private let token = ("Authorization", "Bearer secret")
  private let browser = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")

  private func server(_ change: (inout ServerOptions) -> Void = { _ in }) throws -> TestServer {
    try TestServer {
      $0.token = "secret"
      $0.page = ServerOptions.BrowserPage(name: "Photos \"2026\"")
      change(&$0)
    }
  }

  @Test func everyFolderShowsThePageToABrowser() throws {
    let server = try server()
    for (path, base) in [("/", "./"), ("/a/", "../"), ("/a/b/?x", "../../")] {
      let answer = try server.ask("GET", path, [browser])
      #expect(answer.status == 200)
      #expect(answer.text.contains("data-base=\"\(base)\""), "\(path)")
      #expect(!answer.text.contains("{{"))
      #expect(answer["Content-Security-Policy"]?.contains("script-src 'self';") == true)
      #expect(!answer.text.contains("secret"))
    }
    // Whatever path is asked for, the page that is in memory stays small.
    for path in [String(repeating: "/", count: 16_000), String(repeating: "/a", count: 257) + "/", "/../", "/%/"] {
      #expect(try (400..<500).contains(server.ask("GET", path, [browser]).status))
    }
    #expect(try server.ask("GET", String(repeating: "/a", count: 256) + "/", [browser]).body.count < 10_000)
    // Programs, and servers without the page, are as before.
    #expect(try server.ask("GET", "/").status == 401)
    #expect(try TestServer().ask("GET", "/", [browser]).text.contains("Nothing has arrived here yet"))
  }

  /// Whatever the page refers to is there, needs no token, and has its media type.
  @Test func allFilesOfThePageAreThere() throws {
    let server = try server()
    var names = ["page.css", "page.js"]
    let page = try server.ask("GET", "/", [browser]).text
    for match in page.matches(of: /\.fullbore-page\/([a-z.]+)/) { names.append(String(match.1)) }
    var (seen, size): (Set<String>, Int) = ([], page.utf8.count)
    while let name = names.popLast() {
      if !seen.insert(name).inserted { continue }
      let answer = try server.ask("GET", "/.fullbore-page/\(name)")
      #expect(answer.status == 200, "\(name)")
      let types = [".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"]
      #expect(answer["Content-Type"] == types[String(name.suffix(from: name.lastIndex(of: ".")!))], "\(name)")
      size += answer.body.count
      for match in answer.text.matches(of: /from "\.\/([a-z.]+)"/) { names.append(String(match.1)) }
    }
    print("the page has \(seen.count + 1) files with \(size) bytes")
    #expect(size < 60_000)
    #expect(try server.ask("GET", "/.fullbore-page/none.js", [token]).status == 404)
    #expect(try server.ask("GET", "/.fullbore-page/../secret", [token]).status == 404)
    #expect(try server.ask("PUT", "/.fullbore-page/page.js", [token], body: [1]).status == 404)
    #expect(try TestServer().ask("PUT", "/.fullbore-page/x", body: [1]).status == 403)
  }

  @Test func thePageLearnsWhatTheServerOffers() throws {
    let server = try server {
      $0.maxSize = 5000
      $0.maxTotal = 1_000_000
      $0.reading = .names
    }
    #expect(try server.ask("GET", "/.fullbore-page/about").status == 401)
    let answer = try server.ask("GET", "/.fullbore-page/about", [token])
    #expect(answer["Content-Type"] == "application/json")
    #expect(
      answer.text == #"{"name":"Photos \"2026\"","free":1000000,"maxSize":5000,"receives":true,"lists":true,"#
        + #""downloads":false,"left":null,"once":false,"maxTotal":1000000}"# + "\n")
    #expect(try server.ask("PUT", "/x", [token], body: [UInt8](repeating: 1, count: 1000)).status == 201)
    #expect(try server.ask("GET", "/.fullbore-page/about", [token]).text.contains("\"free\":999000,"))
    let disk = try self.server { $0.reading = .nothing }.ask("GET", "/.fullbore-page/about", [token]).text
    let free = try #require(disk.firstMatch(of: /"free":([0-9]+),/)?.1)
    #expect(try #require(Int(free)) > 1 << 20)
    #expect(disk.contains("\"maxTotal\":null"))
    #expect(disk.contains("\"lists\":false,\"downloads\":false"))
  }

  /// The page has a text for each kind in the languages of its readers.
  @Test func aRefusalHasAKindForThePage() throws {
    let server = try server {
      $0.maxSize = 5000
      $0.maxTotal = 4000
    }
    server.folder.write("file", [1])
    func refusal(_ path: String, length: Int = 1) throws -> String? {
      let headers = [token, tus, ("Upload-Length", "\(length)"), ("Upload-Metadata", "relativePath \(base64(path))")]
      return try server.ask("POST", "/", headers, body: [])["Fullbore-Error"]
    }
    #expect(try refusal("a/.fullbore/b") == "reserved-name" && refusal("../b") == nil)
    #expect(try refusal(String(repeating: "a", count: 256)) == "long-name")
    #expect(try refusal(String(repeating: "a/", count: 300) + "b") == "long-name")
    #expect(try refusal("file/b") == "folder-taken" && refusal("file", length: 2) == "name-taken")
    #expect(try refusal("b", length: 5001) == "too-large" && refusal("b", length: 4001) == "beyond-total")
    #expect(try refusal("b") == nil)
    let reader = try self.server { $0.isReadOnly = true }
    #expect(
      try reader.ask("POST", "/", [token, tus, ("Upload-Length", "1")], body: [])["Fullbore-Error"] == "read-only")
    let script = try server.ask("GET", "/.fullbore-page/text.js").text
    for kind in ServerError.Kind.allCases { #expect(script.contains("\"\(kind.rawValue)\":"), "\(kind)") }
  }

  @Test func aListForScriptsIsJSON() throws {
    let server = try server()
    server.folder.write(BytePath("<b>&\"\u{1}ü"), [1, 2])
    server.folder.write(BytePath([0xFF, 0x61]), [])
    server.folder.makeFolder("folder")
    let json = [token, ("Accept", "application/json")]
    let text = try server.ask("GET", "/", json).text
    #expect(text.contains(",\"next\":null,\"archive\":\"./?archive=zip&ticket="))
    #expect(text.contains(#"{"name":"<b>&\"\u0001ü","url":"./%3Cb%3E%26%22%01%C3%BC?ticket="#), "\(text)")
    #expect(text.contains("{\"name\":\"\u{FFFD}a\",\"url\":\"./%FFa?ticket="), "\(text)")
    #expect(text.contains(#"{"name":"folder","url":"./folder/","folder":true,"size":0,"modified":"#), "\(text)")
    #expect(try server.ask("GET", "/folder/", json).text.hasPrefix("{\"entries\":[],\"next\":null,\"archive\":"))
    #expect(try server.ask("GET", "/none/", json).status == 404)
    for number in 0..<10_001 { server.folder.write(BytePath("folder/f\(number)"), []) }
    let first = try server.ask("GET", "/folder/", json).text
    let next = try #require(first.firstMatch(of: /"next":"([^"]+)"/)?.1)
    let second = try server.ask("GET", "/folder/?after=\(next)", json).text
    #expect(first.matches(of: /"name"/).count == 10_000 && second.matches(of: /"name"/).count == 1)
  }

  /// An open page asks for the list every few seconds.
  @Test func aListThatIsTheSameIsNotSentAgain() throws {
    let server = try server()
    server.folder.write("a", [1])
    let json = [token, ("Accept", "application/json")]
    let first = try server.ask("GET", "/", json)
    let tag = try #require(first["ETag"])
    let again = try server.ask("GET", "/", json + [("If-None-Match", tag)])
    #expect(again.status == 304 && again.body.isEmpty && again["ETag"] == tag)
    server.folder.write("b", [1])
    let other = try server.ask("GET", "/", json + [("If-None-Match", tag)])
    #expect(other.status == 200 && other["ETag"] != tag && other.text.contains("\"name\":\"b\""))
  }

  /// Guests learn nothing of the computer beyond the folder.
  @Test func noAnswerNamesThePathOfTheFolder() throws {
    let outer = try TestFolder()
    outer.makeFolder("served")
    let server = try TestServer(over: outer) { $0.folder = outer.path.appending("served") }
    outer.removeOwnFolder(of: "served")
    #expect(outer.path.appending("served").withCString { rmdir($0) } == 0)
    for (method, path) in [("PUT", "/a"), ("GET", "/"), ("POST", "/")] {
      let headers = method == "POST" ? [tus, ("Upload-Length", "5"), ("Upload-Metadata", "filename YQ==")] : []
      let text = try server.ask(method, path, headers, body: method == "GET" ? nil : []).text
      #expect(!text.contains(outer.path.description), "\(method): \(text)")
    }
    #expect(try server.ask("PUT", "/a", body: [1]).text.contains("the served folder"))
  }

  @Test(arguments: ["PUT", "tus", "tus in one", "form", "IETF"]) func everyReceivedFileIsReported(_ way: String) throws
  {
    let files = Mutex<[ReceivedFile]>([])
    let server = try TestServer { options in options.received = { file in files.withLock { $0.append(file) } } }
    let agent = ("User-Agent", "Test/1")
    for _ in 0..<2 {
      switch way {
      case "PUT": _ = try server.ask("PUT", "/a/b", [agent], body: [1, 2])
      case "tus": _ = try server.patch(server.create("b", length: 2, in: "/a/"), at: 0, [1, 2], [agent])
      case "tus in one":
        let head = [tus, agent, ("Upload-Length", "2"), ("Upload-Metadata", "filename \(base64("b"))")]
        _ = try server.ask(
          "POST", "/a/", head + [("Content-Type", "application/offset+octet-stream")], body: [1, 2])
      case "form":
        let form = "--x\r\nContent-Disposition: form-data; name=f; filename=b\r\n\r\n\u{1}\u{2}\r\n--x--\r\n"
        _ = try server.ask(
          "POST", "/a/", [agent, ("Content-Type", "multipart/form-data; boundary=x")], body: Array(form.utf8))
      default: _ = try server.ask("PUT", "/a/b", [agent, ("Upload-Complete", "?1")], body: [1, 2])
      }
    }
    let found = files.withLock { $0 }
    #expect(found.map(\.path) == ["a/b", "a/b"] && found.map(\.length) == [2, 2])
    #expect(found.map(\.wasThere) == [false, true])
    #expect(found.allSatisfy { $0.sender?.address == "127.0.0.1" && $0.sender?.agent == "Test/1" })
  }
}
