import BlobServer
import Blobs
import TestSupport
import Testing

struct RuleTests {
  @Test func optionsListsTheSupportedProtocols() throws {
    let server = try TestServer { $0.maxSize = 1000 }
    for path in ["/", "/any/where", "*"] {
      let answer = try server.ask("OPTIONS", path)
      #expect(answer.status == 200)
      #expect(answer["Tus-Version"] == "1.0.0")
      #expect(answer["Tus-Resumable"] == "1.0.0")
      #expect(answer["Tus-Max-Size"] == "1000")
      #expect(
        answer.headers.list("Tus-Extension") == [
          "creation", "creation-with-upload", "creation-defer-length", "termination", "expiration", "checksum",
          "checksum-trailer", "concatenation", "concatenation-unfinished",
        ])
      #expect(answer.headers.list("Allow").contains("PUT"))
    }
  }

  @Test(arguments: ["evil.example", "localhost:1", "127.0.0.1.evil.example", "localhost.", "192.168.1.1", ""])
  func aForeignHostIsRefused(_ host: String) throws {
    let server = try TestServer()
    let answer = try server.ask("GET", "/", [("Host", host)])
    #expect(answer.status == 421)
  }

  @Test func loopbackNamesAreOurs() throws {
    let server = try TestServer()
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
      #expect(try server.ask("GET", "/", [("Host", host)]).status == 200)
      #expect(try server.ask("GET", "/", [("Host", "\(host):\(server.server.port)")]).status == 200)
    }
    #expect(try server.ask("GET", "/", [("Host", "localhost"), ("Host", "localhost")]).status == 400)
    let client = try server.client()
    try client.send(Array("GET / HTTP/1.1\r\n\r\n".utf8))
    #expect(try client.answer().status == 400)
  }

  /// Behind a proxy, which forwards its own name or that of this server.
  @Test func theNamesItWasGivenAreOurs() throws {
    let server = try TestServer { $0.hosts = ["photos.example", "other.example:8443", "[2001:db8::1]"] }
    for host in [
      "photos.example", "PHOTOS.example:443", "photos.example:8443", "other.example:8443", "[2001:db8::1]:1",
      "localhost",
    ] {
      #expect(try server.ask("GET", "/", [("Host", host)]).status == 200, "\(host)")
    }
    for host in ["other.example", "other.example:1", "photos.example.evil", "xphotos.example", "2001:db8::1", ""] {
      #expect(try server.ask("GET", "/", [("Host", host)]).status == 421, "\(host)")
    }
    // A proxy may also put this server's own address into `Host`.
    let ours = [("Host", "127.0.0.1"), ("Origin", "https://photos.example")]
    #expect(try server.ask("PUT", "/a", ours, body: [1]).status == 201)
    let foreign = [("Host", "127.0.0.1"), ("Origin", "https://evil.example")]
    #expect(try server.ask("PUT", "/b", foreign, body: [1]).status == 403)
  }

  @Test func aTokenAdmitsEveryName() throws {
    let server = try TestServer { $0.token = "secret" }
    let head = [("Host", "photos.example"), ("Authorization", "Bearer secret")]
    #expect(try server.ask("PUT", "/a", head, body: [1]).status == 201)
    #expect(try server.ask("PUT", "/b", [head[0]], body: [1]).status == 401)
    #expect(try server.ask("PUT", "/b", head + [("Origin", "https://evil.example")], body: [1]).status == 403)
  }

  @Test func theRefusalOfANameSaysWhatToDo() throws {
    let server = try TestServer()
    let text = try server.ask("GET", "/", [("Host", "photos.example")]).text
    #expect(text.contains("photos.example") && text.contains("--host"))
  }

  /// A space and a combining character after it are one Swift `Character`.
  @Test func aTokenMayBeginWithAnything() throws {
    let server = try TestServer { $0.token = "\u{301}x" }
    #expect(try server.ask("GET", "/", [("Authorization", "Bearer \u{301}x")]).status == 200)
  }

  @Test func aForeignOriginIsRefused() throws {
    let server = try TestServer()
    #expect(try server.ask("GET", "/", [("Origin", "https://evil.example")]).status == 403)
    #expect(try server.ask("PUT", "/a", [("Origin", "null")], body: [1]).status == 403)
    #expect(try server.ask("GET", "/", [("Origin", "http://localhost")]).status == 200)
    let open = try TestServer { $0.allowedOrigins = ["https://app.example"] }
    #expect(try open.ask("GET", "/", [("Origin", "https://app.example")]).status == 200)
    #expect(try open.ask("GET", "/", [("Origin", "https://evil.example")]).status == 403)
  }

  @Test func aTokenIsAskedFor() throws {
    let server = try TestServer { $0.token = "secret" }
    let none = try server.ask("GET", "/")
    #expect(none.status == 401)
    #expect(none["WWW-Authenticate"]?.hasPrefix("Bearer") == true)
    for wrong in ["Bearer secre", "Bearer secrets", "Bearer Secret", "Basic secret", "secret", "Bearer "] {
      #expect(try server.ask("PUT", "/a", [("Authorization", wrong)], body: [1]).status == 401)
    }
    #expect(try server.ask("PUT", "/a", [("Authorization", "Bearer secret")], body: [1]).status == 201)
    #expect(try server.ask("GET", "/a", [("Authorization", "bearer secret")]).status == 200)
    let early = try server.client()
    try early.head("PUT", "/big", [("Content-Length", "5000000000")])
    #expect(try early.answer().status == 401)
  }

  @Test func aReadOnlyServerTakesNothing() throws {
    let folder = try TestFolder()
    folder.write("a", [1])
    let server = try TestServer(over: folder) { $0.isReadOnly = true }
    #expect(try server.ask("GET", "/a").body == [1])
    #expect(try server.ask("PUT", "/b", body: [1]).status == 405)
    #expect(try server.ask("POST", "/", [tus, ("Upload-Length", "1")], body: []).status == 405)
    #expect(try server.ask("DELETE", "/a").status == 405)
    #expect(try server.ask("OPTIONS", "/")["Tus-Extension"] == nil)
    #expect(TestFolder.names(folder.path) == ["a"])
  }

  @Test func deleteMustBeAllowed() throws {
    let server = try TestServer { $0.allowsDelete = true }
    server.folder.write("a", [1])
    server.folder.makeFolder("d")
    #expect(try server.ask("DELETE", "/a").status == 204)
    #expect(server.folder.read("a") == nil)
    #expect(try server.ask("DELETE", "/a").status == 404)
    #expect(try server.ask("DELETE", "/d").status == 409)
    let strict = try TestServer()
    strict.folder.write("a", [1])
    let answer = try strict.ask("DELETE", "/a")
    #expect(answer.status == 405)
    #expect(answer.headers.list("Allow").contains("GET"))
  }

  @Test(arguments: [ServerOptions.Reading.files, .nothing])
  func theURLOfAFolderDeletesNoFile(_ reading: ServerOptions.Reading) throws {
    let server = try TestServer {
      $0.allowsDelete = true
      $0.reading = reading
    }
    server.folder.write("a", [1])
    server.folder.makeFolder("b")
    #expect(try server.ask("DELETE", "/a/").status == 404)
    #expect(server.folder.read("a") == [1])
    #expect(try server.ask("DELETE", "/b/").status == (reading == .files ? 409 : 404))
    #expect(try server.ask("DELETE", "/a").status == 204)
  }

  @Test func deleteKeepsAFileThatItsPreconditionsDoNotMean() throws {
    let server = try TestServer { $0.allowsDelete = true }
    let old = try #require(try server.ask("PUT", "/a", body: [1])["ETag"])
    let now = try #require(try server.ask("PUT", "/a", [("If-Match", old)], body: [2, 3])["ETag"])
    let refused = [
      ("If-Match", old), ("If-Match", "\"other\""), ("If-Match", "W/" + now), ("If-None-Match", "*"),
      ("If-None-Match", now), ("If-None-Match", "W/" + now),
      ("If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"),
    ]
    for header in refused {
      #expect(try server.ask("DELETE", "/a", [header]).status == 412, "\(header)")
      #expect(server.folder.read("a") == [2, 3])
    }
    // An invalid date is ignored, and with If-Match the time does not count.
    let admitted = [("If-Match", "\(old), \(now)"), refused[6], ("If-None-Match", old)]
    #expect(try server.ask("DELETE", "/a", admitted).status == 204)
    #expect(try server.ask("DELETE", "/a", [("If-Match", now)]).status == 404)
    #expect(try server.ask("PUT", "/a", body: [1]).status == 201)
    #expect(try server.ask("DELETE", "/a", [("If-Match", "*"), ("If-Unmodified-Since", "soon")]).status == 204)
  }

  @Test func unknownMethodsAndCodingsAreRefused() throws {
    let server = try TestServer()
    #expect(try server.ask("BREW", "/").status == 501)
    #expect(try server.ask("PATCH", "/file", body: [1]).status == 405)
    let client = try server.client()
    try client.head("PUT", "/a", [("Transfer-Encoding", "gzip")])
    #expect(try client.answer().status == 501)
  }

  @Test func aFolderIsServedByOneServer() throws {
    let folder = try TestFolder()
    let first = try TestServer(over: folder)
    let error = #expect(throws: ServerError.self) { try TestServer(over: folder) }
    #expect(error?.message.contains(folder.path.description) == true)
    first.server.stop(grace: .zero)
    #expect(throws: Never.self) { try TestServer(over: folder) }
  }

  @Test func aServerThatCannotListenThrows() throws {
    let server = try TestServer()
    let taken = #expect(throws: ServerError.self) { try TestServer { $0.port = server.server.port } }
    #expect(taken?.message.contains("port \(server.server.port)") == true)
    #expect(throws: ServerError.self) { try TestServer { $0.address = "no.such.address" } }
    #expect(throws: ServerError.self) { try Server(ServerOptions(folder: "/no/such/folder", port: 0)) }
  }

  @Test func ipv6IsListenedTo() throws {
    let server = try TestServer { $0.address = "::1" }
    #expect(server.server.url == "http://[::1]:\(server.server.port)/")
    let client = try RawHTTPClient(port: server.server.port, ipv6: true)
    #expect(try client.ask("GET", "/", [("Host", "[::1]:\(server.server.port)")]).status == 200)
  }
}
