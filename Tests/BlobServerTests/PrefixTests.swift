import BlobHTTP
import BlobServer
import Blobs
import TestSupport
import Testing

/// A reverse proxy may publish the server below a path prefix that it strips, without telling the server.
struct PrefixTests {
  /// A client of such a proxy, which knows only URLs below `/photos`.
  private struct Client {
    let server: TestServer

    func ask(
      _ method: String, _ url: HTTPURL, _ headers: [(String, String)], body: [UInt8]? = nil
    ) throws -> RawHTTPClient.Answer {
      try server.ask(method, stripped(url), headers, body: body)
    }

    func stripped(_ url: HTTPURL) throws -> String {
      try #require(url.path.hasPrefix("/photos/"), "\(url)")
      return String(url.path.dropFirst(7))
    }

    func resolved(_ name: String, in answer: RawHTTPClient.Answer, from url: HTTPURL) throws -> HTTPURL {
      try #require(answer.headers[name].flatMap { url.resolve($0) })
    }
  }

  private let base = HTTPURL("http://localhost/photos/")!
  private let octets = ("Content-Type", "application/offset+octet-stream")

  @Test(arguments: ["", "a/", "a%20b/c/", "a"]) func anUploadIsFoundBelowThePrefix(_ folder: String) throws {
    let client = Client(server: try TestServer())
    let place = try #require(base.resolve(folder))
    let created = try client.ask(
      "POST", place, [tus, ("Upload-Length", "3"), ("Upload-Metadata", "filename \(base64("x y"))")], body: [])
    #expect(created.status == 201)
    let upload = try client.resolved("Location", in: created, from: place)
    #expect(upload.path.hasPrefix("/photos/.fullbore-upload/"), "\(upload)")
    #expect(upload.origin == base.origin)
    let patched = try client.ask("PATCH", upload, [tus, octets, ("Upload-Offset", "0")], body: [1, 2, 3])
    #expect(patched.status == 204)
    let state = try client.ask("HEAD", upload, [tus])
    let file = try client.resolved("Content-Location", in: state, from: upload)
    #expect(try client.ask("GET", file, []).body == [1, 2, 3])
    #expect(file == place.folder.appending(pathBytes: "x y".utf8))
  }

  @Test(arguments: ["x", "a/b/x"]) func theOtherProtocolIsFoundBelowThePrefix(_ name: String) throws {
    let server = try TestServer()
    let client = Client(server: server)
    let place = try #require(base.resolve(name))
    let draft = ("Upload-Draft-Interop-Version", "8")
    let wire = try server.client()
    try wire.head(
      "POST", try client.stripped(place), [draft, ("Upload-Complete", "?0"), ("Content-Length", "0")])
    let interim = try wire.readHead()
    let created = try wire.answer()
    #expect(interim.status == 104)
    let upload = try client.resolved("Location", in: created, from: place)
    #expect(try client.resolved("Location", in: interim, from: place) == upload)
    #expect(upload.path.hasPrefix("/photos/.fullbore-upload/"), "\(upload)")
    let head = [
      draft, ("Upload-Complete", "?1"), ("Upload-Offset", "0"), ("Content-Type", "application/partial-upload"),
    ]
    let patched = try client.ask("PATCH", upload, head, body: [1, 2, 3])
    #expect(patched.status == 201)
    #expect(try client.resolved("Location", in: patched, from: upload) == place)
  }

  @Test func partsAreTakenWithThePrefixBeforeTheirPaths() throws {
    let client = Client(server: try TestServer())
    var parts: [HTTPURL] = []
    for byte in 1...3 as ClosedRange<UInt8> {
      let head = [tus, octets, ("Upload-Length", "1"), ("Upload-Concat", "partial")]
      let created = try client.ask("POST", base, head, body: [byte])
      parts.append(try client.resolved("Location", in: created, from: base))
    }
    let relative = try #require(parts[2].path.split(separator: "/").last)
    let text = "final;\(parts[0].path) \(parts[1].text) .fullbore-upload/\(relative)"
    let head = [tus, ("Upload-Concat", text), ("Upload-Metadata", "filename \(base64("x"))")]
    let joined = try client.ask("POST", base, head, body: [])
    #expect(joined.status == 201, "\(joined.text)")
    #expect(client.server.folder.read("x") == [1, 2, 3])
    let final = try client.resolved("Location", in: joined, from: base)
    #expect(try client.ask("HEAD", final, [tus])["Upload-Offset"] == "3")
    // A repeated request gets the same result.
    let again = try client.ask("POST", base, head, body: [])
    #expect(try client.resolved("Location", in: again, from: base) == final)
  }

  @Test func foldersStayBelowThePrefix() throws {
    let client = Client(server: try TestServer())
    client.server.folder.makeFolder("a b")
    let folder = try #require(base.resolve("a%20b"))
    let moved = try client.ask("GET", folder, [])
    #expect(moved.status == 301)
    #expect(try client.resolved("Location", in: moved, from: folder).path == "/photos/a%20b/")
    let form = Array("--B\r\nContent-Disposition: form-data; name=f; filename=x\r\n\r\n1\r\n--B--\r\n".utf8)
    for (place, target) in [(base, "/photos/"), (folder, "/photos/a%20b/")] {
      let type = ("Content-Type", "multipart/form-data; boundary=B")
      let sent = try client.ask("POST", place, [type, ("Accept", "text/html")], body: form)
      #expect(sent.status == 303)
      #expect(try client.resolved("Location", in: sent, from: place).path == target)
    }
  }
}
