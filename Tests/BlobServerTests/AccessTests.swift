import BlobHTTP
import BlobServer
import Blobs
import TestSupport
import Testing

/// Which requests a server with a token processes.
struct AccessTests {
  private func server(page: Bool = false, _ reading: ServerOptions.Reading = .files) throws -> TestServer {
    let server = try TestServer {
      $0.token = "secret"
      $0.reading = reading
      if page { $0.page = ServerOptions.BrowserPage(name: "Photos") }
    }
    server.folder.write("a b.jpg", [1, 2, 3])
    return server
  }

  private func basic(_ text: String) -> (String, String) { ("Authorization", "Basic \(base64(text))") }

  @Test func theTokenIsThePasswordOfAnyUser() throws {
    let server = try server()
    #expect(try server.ask("GET", "/a%20b.jpg", [("Authorization", "Bearer secret")]).status == 200)
    #expect(try server.ask("GET", "/a%20b.jpg", [basic("anyone:secret")]).status == 200)
    #expect(try server.ask("GET", "/a%20b.jpg", [basic(":secret")]).body == [1, 2, 3])
    for wrong in ["secret", "secret:", "secret:anyone", "anyone:secret ", "anyone:secretsecret"] {
      #expect(try server.ask("GET", "/a%20b.jpg", [basic(wrong)]).status == 401, "\(wrong)")
    }
    for wrong in ["Basic", "Basic %%%", "Basic ", "Digest secret", "secret"] {
      #expect(try server.ask("GET", "/a%20b.jpg", [("Authorization", wrong)]).status == 401, "\(wrong)")
    }
  }

  /// A browser shows a dialog for a name and a password if it is offered Basic authentication, so it is offered that only where
  /// it opens a page, and never by a server with a page of its own. Programs send a password only if they are offered it.
  @Test func basicAuthenticationIsOfferedToProgramsAndForPages() throws {
    func challenges(_ answer: RawHTTPClient.Answer) -> [String] {
      answer.headers.fields.filter { $0.name == "WWW-Authenticate" }.map { String($0.value.prefix { $0 != " " }) }
    }
    let opened = ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
    for hasPage in [false, true] {
      let server = try self.server(page: hasPage)
      func ask(_ headers: [(String, String)], _ method: String = "GET") throws -> [String] {
        try challenges(server.ask(method, "/a%20b.jpg", headers))
      }
      #expect(try ask([opened, ("Accept-Language", "de")]) == (hasPage ? ["Bearer"] : ["Bearer", "Basic"]))
      for method in ["GET", "HEAD", "PUT"] {
        #expect(try ask([("Accept", "*/*")], method) == ["Bearer", "Basic"])
        #expect(try ask([("Accept", "*/*"), basic("any:wrong")], method) == ["Bearer", "Basic"])
        #expect(try ask([("Accept", "*/*"), ("Authorization", "Bearer wrong")], method) == ["Bearer"])
        // Requests of a page's scripts, and of its pictures.
        #expect(try ask([("Accept", "*/*"), ("Accept-Language", "de-DE,de;q=0.9")], method) == ["Bearer"])
        #expect(try ask([("Accept", "image/avif,*/*;q=0.8"), ("Sec-Fetch-Mode", "no-cors")], method) == ["Bearer"])
      }
    }
  }

  @Test func aTicketIsForReadingOneFile() throws {
    let server = try server()
    server.folder.write("other", [9])
    let list = try server.ask("GET", "/", [("Accept", "application/json"), ("Authorization", "Bearer secret")]).text
    let ticket = try #require(list.firstMatch(of: /a%20b\.jpg\?ticket=([0-9a-f]+)"/)?.1)
    #expect(try server.ask("GET", "/a%20b.jpg?ticket=\(ticket)").body == [1, 2, 3])
    #expect(try server.ask("GET", "/%61 b.jpg?ticket=\(ticket)".replacing(" ", with: "%20")).body == [1, 2, 3])
    #expect(try server.ask("HEAD", "/a%20b.jpg?ticket=\(ticket)").status == 200)
    #expect(try server.ask("GET", "/a%20b.jpg?ticket=\(ticket)", [("Range", "bytes=1-1")]).body == [2])
    #expect(try server.ask("GET", "/other?ticket=\(ticket)").status == 401)
    #expect(try server.ask("GET", "/?ticket=\(ticket)").status == 401)
    #expect(try server.ask("GET", "/a%20b.jpg/?ticket=\(ticket)").status == 401)
    #expect(try server.ask("PUT", "/a%20b.jpg?ticket=\(ticket)", body: [7]).status == 401)
    #expect(try server.ask("GET", "/a%20b.jpg?ticket=\(ticket.dropLast())").status == 401)
    #expect(try server.ask("GET", "/a%20b.jpg?ticket=").status == 401)
    #expect(try server.ask("GET", "/a%20b.jpg?ticket=\(ticket)&ticket=\(ticket)").status == 401)
    // Another server has other tickets.
    #expect(try self.server().ask("GET", "/a%20b.jpg?ticket=\(ticket)").status == 401)
  }

  /// A browser that was fetching a file, or shows links, goes on after the server was started again.
  @Test func ticketsAreValidAsLongAsTheTokenIs() throws {
    let folder = try TestFolder()
    folder.write("a.jpg", [1, 2, 3])
    func server(_ token: String) throws -> TestServer { try TestServer(over: folder) { $0.token = token } }
    let first = try server("secret")
    let json = [("Accept", "application/json"), ("Authorization", "Bearer secret")]
    let list = try first.ask("GET", "/", json).text
    let file = try #require(list.firstMatch(of: /"\.(\/a\.jpg\?ticket=[0-9a-f]+)"/)?.1)
    let archive = try #require(list.firstMatch(of: /"\.(\/\?archive=zip&ticket=[0-9a-f]+)"/)?.1)
    first.server.stop(grace: .zero)
    let second = try server("secret")
    #expect(try second.ask("GET", String(file)).body == [1, 2, 3])
    #expect(try second.ask("GET", String(archive)).status == 200)
    second.server.stop(grace: .zero)
    let other = try server("other")
    #expect(try other.ask("GET", String(file)).status == 401 && other.ask("GET", String(archive)).status == 401)
  }

  /// A person who opens the address of a file, such as one with an old ticket, is asked for the code.
  @Test func aBrowserAtAFileGetsThePage() throws {
    let browser = ("Accept", "text/html,*/*;q=0.8")
    let server = try server(page: true)
    server.folder.makeFolder("sub")
    for path in ["/a%20b.jpg", "/a%20b.jpg?ticket=0", "/sub/?archive=zip&ticket=0", "/sub/none"] {
      let answer = try server.ask("GET", path, [browser])
      #expect(
        answer.status == 401 && answer.text.contains("data-base=\"\(path.contains("sub") ? "../" : "./")\""), "\(path)")
    }
    #expect(try server.ask("GET", "/a%20b.jpg").text == "a valid Bearer token is required\n")
    #expect(try server.ask("GET", "/a%20b.jpg", [browser, ("Authorization", "Bearer secret")]).body == [1, 2, 3])
  }

  @Test func readingIsAsFarAsThePermissionGoes() throws {
    let token = ("Authorization", "Bearer secret")
    let names = try server(.names)
    #expect(try names.ask("GET", "/", [token]).text.contains("a b.jpg"))
    #expect(try names.ask("HEAD", "/a%20b.jpg", [token])["Content-Length"] == "3")
    #expect(try names.ask("GET", "/a%20b.jpg", [token]).status == 403)
    let list = try names.ask("GET", "/", [token, ("Accept", "application/json")]).text
    #expect(list.contains(#""name":"a b.jpg","url":null"#), "\(list)")

    let nothing = try server(.nothing)
    for (method, path) in [("GET", "/"), ("GET", "/a%20b.jpg"), ("HEAD", "/a%20b.jpg"), ("GET", "/none")] {
      #expect(try nothing.ask(method, path, [token]).status == 403, "\(method) \(path)")
    }
    for server in [names, nothing] {
      #expect(try server.ask("PUT", "/new", [token], body: [5]).status == 201)
      #expect(server.folder.read("new") == [5])
    }
  }
}
