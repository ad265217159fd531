import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// `QUERY` of a folder: versions and digests of many files in one request.
struct QueryTests {
  private static let type = ("Content-Type", "application/vnd.fullbore.names")
  private static let wants = ("Want-Repr-Digest", "sha-256=1")

  private func ask(
    _ server: TestServer, _ names: String, at path: String = "/", _ more: [(String, String)] = []
  ) throws -> RawHTTPClient.Answer {
    try server.ask("QUERY", path, [Self.type, Self.wants] + more, body: Array(names.utf8))
  }

  private func digest(_ bytes: [UInt8]) -> String { DigestField.text([.sha256: Digest.value(of: bytes, .sha256)]) }

  private func etag(_ server: TestServer, _ path: String) throws -> String {
    try #require(try server.ask("HEAD", path)["ETag"])
  }

  @Test func eachNameIsAnsweredInOrder() throws {
    let server = try TestServer()
    server.folder.makeFolder("in")
    server.folder.makeFolder("in/below")
    server.folder.write("in/a b", pattern(1000))
    server.folder.write("in/below/ä", [])
    server.folder.write("in/.hidden", [1])
    server.folder.link("in/link", to: "a b")
    let answer = try ask(server, "nothing\na%20b\nbelow/%C3%A4\nbelow\n./\nbelow/\nnone/\na%20b/x\nlink\n", at: "/in/")
    #expect(answer.status == 200 && answer["Content-Type"] == "application/vnd.fullbore.versions")
    let lines = answer.text.split(separator: "\n").map(String.init)
    #expect(
      lines == [
        "none", "file 1000 \(try etag(server, "/in/a%20b")) \(digest(pattern(1000)))",
        "file 0 \(try etag(server, "/in/below/%C3%A4")) \(digest([]))", "none", "folder 1", "folder 1", "none", "none",
        "error 403",
      ])
  }

  @Test func aKnownVersionIsNotRead() throws {
    let server = try TestServer()
    server.folder.write("a", pattern(10))
    let tag = try etag(server, "/a")
    #expect(try ask(server, "a \(tag)\n").text == "file 10 \(tag) -\n")
    #expect(try ask(server, "a \"other\"\n").text == "file 10 \(tag) \(digest(pattern(10)))\n")
    #expect(try server.ask("QUERY", "/", [Self.type], body: Array("a\n".utf8)).text == "file 10 \(tag) -\n")
  }

  /// Fullbore's client verifies uploads by algorithms that have no registered name.
  @Test(arguments: [DigestAlgorithm.xxh128, .md5, .sha512]) func aQueryAnswersUnregisteredDigestsToo(
    _ algorithm: DigestAlgorithm
  )
    throws
  {
    let server = try TestServer()
    server.folder.write("a", pattern(1000))
    let fields = [Self.type, ("Want-Repr-Digest", DigestField.wish(algorithm)), ("Cache-Control", "no-cache")]
    let digest = DigestField.text([algorithm: Digest.value(of: pattern(1000), algorithm)], [algorithm])
    for _ in 0..<2 {
      let answer = try server.ask("QUERY", "/", fields, body: Array("a\n".utf8))
      #expect(answer.text == "file 1000 \(try etag(server, "/a")) \(digest)\n")
    }
    // HEAD tells the digest that is known, and reads the file of which none is.
    for name in ["a", "b"] as [BytePath] {
      if name == "b" { server.folder.write("b", pattern(1000)) }
      let head = try server.ask("HEAD", "/\(name)", [fields[1]])
      #expect(head.status == 200 && head["Repr-Digest"] == (algorithm == .md5 ? nil : digest), "\(name)")
    }
    #expect(try server.ask("HEAD", "/a", [("Want-Repr-Digest", "none=1")])["Repr-Digest"] == nil)
    #expect(QueryOffer.digests(try server.ask("OPTIONS", "/").headers).contains(algorithm))
  }

  @Test(
    arguments: [
      ("", []), ("application/sql", []), ("application/sql;digests=\"xxh128\"", []), (QueryOffer.names, []),
      ("\(QueryOffer.names);digests=\"\"", []), ("\(QueryOffer.names);digests=xxh128", []),
      ("application/sql, \(QueryOffer.names); digests=\"sha-256 none xxh128\"", [DigestAlgorithm.sha256, .xxh128]),
    ] as [(String, [DigestAlgorithm])])
  func digestsAreOfferedByTheirNames(_ field: String, _ algorithms: [DigestAlgorithm]) {
    #expect(QueryOffer.digests(["accept-query": field]) == algorithms)
  }

  /// Size and modification time stay as they were, and the first digest is known.
  @Test func aChangedFileNeverHasItsOldDigest() throws {
    let server = try TestServer()
    server.folder.write("a", [1, 2, 3])
    #expect(try ask(server, "a\n").text.hasSuffix("\(digest([1, 2, 3]))\n"))
    var status = stat()
    #expect(server.folder.path.appending("a").status(&status) == 0)
    // The system's clock for files advances in steps.
    usleep(20_000)
    server.folder.write("a", [1, 2, 4])
    let times = [status.st_atim, status.st_mtim]
    _ = server.folder.path.appending("a").withCString { utimensat(AT_FDCWD, $0, times, 0) }
    #expect(try ask(server, "a\n").text.hasSuffix("\(digest([1, 2, 4]))\n"))
  }

  /// The answers for other files do not wait for a long one.
  @Test func longFilesAreAnsweredOneByOne() throws {
    let server = try TestServer()
    for name in ["a", "b", "c"] as [BytePath] {
      server.folder.write(name, [1])
      #expect(server.folder.extend(name, to: 300 << 20))
    }
    server.folder.write("small", [1])
    #expect(try ask(server, "a\nsmall\nb\nc\n").text.split(separator: "\n").count == 2)
    // Its digest is known by now.
    #expect(try ask(server, "small\na\n").text.split(separator: "\n").count == 2)
    #expect(try ask(server, "small\na\n", [("Cache-Control", "no-cache")]).text.split(separator: "\n").count == 1)
  }

  @Test func aQueryThatIsNoListOfNamesIsRefused() throws {
    let server = try TestServer()
    #expect(try server.ask("QUERY", "/", body: [65]).status == 415)
    #expect(try ask(server, "a", at: "/a").status == 404)
    #expect(try ask(server, String(repeating: "a\n", count: 600_000)).status == 413)
    let traversing = try ask(server, "../../etc/passwd\n%2E%2E/x\n.fullbore/lock\n%zz\n")
    #expect(traversing.text == "none\nnone\nerror 403\nnone\n")
    #expect(try server.ask("OPTIONS", "/")["Allow"]?.contains("QUERY") == true)
  }

  @Test func aQueryNeedsTheRightToRead() throws {
    let secret = try TestServer { $0.token = "secret" }
    #expect(try ask(secret, "a\n").status == 401)
    #expect(try ask(secret, "a\n", [("Authorization", "Bearer secret")]).status == 200)
    let receiving = try TestServer { $0.reading = .nothing }
    #expect(try ask(receiving, "a\n").status == 403)
  }
}
