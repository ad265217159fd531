import BlobServer
import TestSupport
import Testing

/// An upload that may replace a file, and that ends after a later one has published the file of that name: its client may
/// have given up long ago, while the server waited for a slow disk or something before it held the request.
struct OlderUploadTests {
  enum Form: CaseIterable { case put, post, form, tus, ietf, concatenation }

  /// Begins an upload that may replace `/in/a`, and returns what sends the rest and tells the status of the answer.
  private func begin(_ form: Form, _ bytes: [UInt8], at server: TestServer) throws -> () throws -> Int {
    let condition = ("If-Match", "*")
    let half = bytes.count / 2
    let client = try server.client()
    func answer() throws -> Int {
      try client.send(Array(bytes[half...]))
      return try client.answer().status
    }
    switch form {
    case .put, .post:
      let length = ("Content-Length", "\(bytes.count)")
      try client.head(form == .put ? "PUT" : "POST", "/in/a", [condition, length, ("Expect", "100-continue")])
      try #require(try client.readHead().status == 100)
      try client.send(Array(bytes[..<half]))
      return answer
    case .form:
      let start = "--x\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n"
      let body = Array(start.utf8) + bytes[..<half]
      let end = Array("\r\n--x--\r\n".utf8)
      let type = ("Content-Type", "multipart/form-data; boundary=x")
      let length = ("Content-Length", "\(body.count + bytes.count - half + end.count)")
      try client.head("POST", "/in/", [condition, type, length])
      try client.send(body)
      // The rule is bound once the head of the part is there, and then its bytes are stored.
      try #require(try eventually { !server.folder.kept.isEmpty })
      return {
        try client.send(Array(bytes[half...]) + end)
        return try client.answer().status
      }
    case .tus:
      let upload = try server.create("a", length: bytes.count, metadata: ",overwrite \(base64("true"))", in: "/in/")
      return { try server.patch(upload, at: 0, bytes).status }
    case .ietf:
      let version = ("Upload-Draft-Interop-Version", "8")
      let head = [version, ("Upload-Complete", "?0"), condition]
      var created = try client.ask("PUT", "/in/a", head, body: Array(bytes[..<half]))
      let upload = try #require(created["Location"])
      // Another request would take over before all bytes of this one have arrived.
      while created.status == 104 { created = try client.answer() }
      let rest = [
        version, ("Upload-Complete", "?1"), ("Upload-Offset", "\(half)"),
        ("Content-Type", "application/partial-upload"),
      ]
      return { try server.ask("PATCH", upload, rest, body: Array(bytes[half...])).status }
    case .concatenation:
      let head = [tus, ("Upload-Length", "\(bytes.count)"), ("Upload-Concat", "partial")]
      let part = try #require(try server.ask("POST", "/in/", head, body: [])["Location"])
      let metadata = "filename \(base64("a")),overwrite \(base64("true"))"
      let final = [tus, ("Upload-Concat", "final;\(part)"), ("Upload-Metadata", metadata)]
      try #require(try server.ask("POST", "/in/", final, body: []).status == 201)
      return { try server.patch(part, at: 0, bytes).status }
    }
  }

  @Test(arguments: Form.allCases) func anOlderUploadDoesNotReplaceTheFileOfALaterOne(_ form: Form) throws {
    let server = try TestServer()
    #expect(try server.ask("PUT", "/in/a", body: [0]).status == 201)
    let end = try begin(form, pattern(1000, seed: 1), at: server)
    #expect(try server.ask("PUT", "/in/a", [("If-Match", "*")], body: [2]).status == 204)
    let status = try end()
    // The response to a form has a status of each file, and the part of a final upload is stored in any case.
    if form != .concatenation { #expect(status == 409, "\(form)") }
    #expect(server.folder.read("in/a") == [2])
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  /// A client that got no answer sends the same bytes again, and the first request may end after the second.
  @Test(arguments: Form.allCases) func theSameBytesCountAsPublished(_ form: Form) throws {
    let server = try TestServer()
    let bytes = pattern(1000, seed: 1)
    #expect(try server.ask("PUT", "/in/a", body: [0]).status == 201)
    let end = try begin(form, bytes, at: server)
    #expect(try server.ask("PUT", "/in/a", [("If-Match", "*")], body: bytes).status == 204)
    #expect(try end() / 100 == 2)
    #expect(server.folder.read("in/a") == bytes)
  }

  @Test(arguments: Form.allCases) func aFileThatHasNotChangedIsReplaced(_ form: Form) throws {
    let server = try TestServer()
    let bytes = pattern(1000, seed: 1)
    #expect(try server.ask("PUT", "/in/a", body: [0]).status == 201)
    #expect(try begin(form, bytes, at: server)() / 100 == 2)
    #expect(try eventually { server.folder.read("in/a") == bytes })
  }

  /// No file is there when the upload begins, so the rule has no version. A record keeps that.
  @Test func aFileThatAppearsMeanwhileIsKept() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      upload = try server.create("a", length: 1, metadata: ",overwrite \(base64("true"))")
    }
    let server = try TestServer(over: folder)
    #expect(try server.ask("PUT", "/a", body: [2]).status == 201)
    #expect(try server.patch(upload, at: 0, [1]).status == 409)
    #expect(folder.read("a") == [2])
  }

  /// The metadata of a creation names the version that it replaces.
  @Test func onlyTheNamedFileIsReplaced() throws {
    let server = try TestServer()
    let first = try #require(try server.ask("PUT", "/in/a", body: [0])["ETag"])
    let metadata = ",overwrite \(base64("true")),replaces \(base64(first))"
    let upload = try server.create("a", length: 1, metadata: metadata, in: "/in/")
    let late = try server.create("a", length: 1, metadata: metadata, in: "/in/")
    #expect(try server.patch(upload, at: 0, [1]).status == 204)
    #expect(server.folder.read("in/a") == [1])
    #expect(try server.patch(late, at: 0, [2]).status == 412)
    let head = [
      tus, ("Upload-Length", "1"), ("Content-Type", "application/offset+octet-stream"),
      ("Upload-Metadata", "filename \(base64("a"))" + metadata),
    ]
    #expect(try server.ask("POST", "/in/", head, body: [2]).status == 412)
    #expect(server.folder.read("in/a") == [1])
    #expect(try eventually { !server.folder.kept.contains { $0.hasSuffix(".data") || $0.hasSuffix(".info") } })
    // The file that was named is gone.
    server.folder.remove("in/a")
    #expect(try server.ask("POST", "/in/", head, body: [2]).status == 412)
    #expect(server.folder.read("in/a") == nil)
  }

  @Test func noFileIsReplacedWhereNoneIsNamed() throws {
    let server = try TestServer()
    let metadata = ",overwrite \(base64("true")),replaces"
    let upload = try server.create("a", length: 1, metadata: metadata)
    let late = try server.create("a", length: 1, metadata: metadata)
    #expect(try server.patch(upload, at: 0, [1]).status == 204)
    #expect(try server.patch(late, at: 0, [2]).status == 412)
    #expect(server.folder.read("a") == [1])
  }

  @Test(arguments: ["x", "\"", "W/\"x\"", "\"x\n\"", "*"]) func whatIsNoETagIsRefused(_ text: String) throws {
    let server = try TestServer()
    let metadata = "filename \(base64("a")),overwrite \(base64("true")),replaces \(base64(text))"
    let head = [tus, ("Upload-Length", "1"), ("Upload-Metadata", metadata)]
    #expect(try server.ask("POST", "/", head, body: []).status == 400)
  }
}
