import BlobServer
import TestSupport
import Testing

/// Tests for the Fetch Standard, "CORS protocol".
struct CrossOriginTests {
  static let app = "https://app.example"

  private func lists(_ answer: RawHTTPClient.Answer, _ name: String, _ wanted: String...) -> Bool {
    let listed = answer.headers.list(name).map { $0.lowercased() }
    return wanted.allSatisfy { listed.contains($0.lowercased()) }
  }

  @Test func aPreflightListsTheAllowedMethodsAndFields() throws {
    let server = try TestServer {
      $0.allowedOrigins = [Self.app]
      $0.token = "secret"
    }
    for (method, path) in [("POST", "/"), ("PATCH", "/.fullbore-upload/x"), ("DELETE", "/x"), ("PUT", "/a")] {
      let answer = try server.ask(
        "OPTIONS", path,
        [
          ("Origin", Self.app), ("Access-Control-Request-Method", method),
          ("Access-Control-Request-Headers", "authorization,tus-resumable"),
        ])
      #expect(answer.status == 200)
      #expect(answer["Access-Control-Allow-Origin"] == Self.app)
      #expect(answer["Vary"] == "Origin")
      #expect(lists(answer, "Access-Control-Allow-Methods", method))
      #expect(
        lists(
          answer, "Access-Control-Allow-Headers", "authorization", "content-type", "tus-resumable", "upload-length",
          "upload-offset", "upload-metadata", "upload-checksum", "upload-complete", "upload-draft-interop-version",
          "upload-incomplete", "content-digest", "repr-digest", "want-repr-digest", "content-disposition"))
      #expect(answer["Access-Control-Max-Age"] == "86400")
    }
  }

  @Test func answersMayBeRead() throws {
    let server = try TestServer { $0.allowedOrigins = ["https://other.example", Self.app] }
    let origin = ("Origin", Self.app)
    let created = try server.ask("POST", "/", [tus, origin, ("Upload-Length", "10")], body: [])
    #expect(created.status == 201)
    let upload = try #require(created["Location"])
    let refused = try server.patch(upload, at: 5, [1], [origin])
    #expect(refused.status == 409)
    for answer in [created, refused, try server.ask("GET", "/nothing", [origin])] {
      #expect(answer["Access-Control-Allow-Origin"] == Self.app)
      #expect(
        lists(
          answer, "Access-Control-Expose-Headers", "Location", "Upload-Offset", "Upload-Length", "Tus-Resumable",
          "Upload-Expires", "Upload-Complete", "Upload-Limit", "ETag", "Repr-Digest"))
    }
  }

  @Test func otherOriginsAreRefusedWithoutCORSFields() throws {
    let server = try TestServer { $0.allowedOrigins = [Self.app] }
    for origin in ["https://evil.example", "null", "https://app.example.evil", "HTTPS://APP.EXAMPLE"] {
      let answer = try server.ask(
        "OPTIONS", "/", [("Origin", origin), ("Access-Control-Request-Method", "POST")])
      #expect(answer.status == 403)
      #expect(answer["Access-Control-Allow-Origin"] == nil)
    }
    #expect(try server.ask("GET", "/")["Access-Control-Allow-Origin"] == nil)
    #expect(try server.ask("GET", "/")["Vary"] == "Origin")
    let closed = try TestServer()
    #expect(try closed.ask("GET", "/")["Vary"] == nil)
  }

  @Test func anyOriginMayBeAllowed() throws {
    let server = try TestServer { $0.allowedOrigins = ["*"] }
    let answer = try server.ask("PUT", "/a", [("Origin", "https://who.example")], body: [1])
    #expect(answer.status == 201)
    #expect(answer["Access-Control-Allow-Origin"] == "*")
  }

  /// A browser hides each header field that is not listed, except for a few in Fetch Standard §2.2.2.
  @Test func everyHeaderOfAnAnswerMayBeRead() throws {
    let server = try TestServer {
      $0.allowedOrigins = [Self.app]
      $0.maxSize = 1000
      $0.maxUnfinished = 1
    }
    let origin = ("Origin", Self.app)
    let folder = ("Content-Type", "multipart/form-data; boundary=b")
    let form = Array("--b\r\nContent-Disposition: form-data; name=f; filename=y\r\n\r\nbytes\r\n--b--\r\n".utf8)
    var answers = [
      try server.ask("OPTIONS", "/", [origin]),
      try server.ask("PUT", "/x", [origin, ("X-OC-MTime", "1"), ("Want-Repr-Digest", "sha-256=1")], body: [1]),
      try server.ask("PUT", "/x", [origin], body: [1]), try server.ask("PUT", "/x", [origin], body: [2]),
      try server.ask("PUT", "/z", [origin], body: pattern(1001)),
      try server.ask("PUT", "/z", [origin, ("Content-Encoding", "gzip")], body: [1]),
      try server.ask("PUT", "/z", [origin, ("Upload-Complete", "?1")], body: [1]),
      try server.ask("PUT", "/w", [origin, ("Upload-Complete", "?1"), ("Upload-Length", "5")], body: [1]),
      try server.ask("GET", "/x", [origin, ("Want-Repr-Digest", "sha-256=1")]), try server.ask("GET", "/", [origin]),
      try server.ask("GET", "/x", [origin, ("Range", "bytes=0-0")]), try server.ask("DELETE", "/x", [origin]),
      try server.ask("POST", "/", [origin, folder], body: form),
    ]
    let create = [tus, origin, ("Upload-Length", "10"), ("Upload-Metadata", "filename \(base64("a"))")]
    answers.append(try server.ask("POST", "/", create, body: []))
    let upload = try #require(answers.last?["Location"])
    answers += [
      try server.ask("HEAD", upload, [tus, origin]), try server.patch(upload, at: 0, pattern(5), [origin]),
      try server.ask("HEAD", upload, [origin]), try server.ask("HEAD", upload, [("Tus-Resumable", "9"), origin]),
      try server.ask("POST", "/", create, body: []), try server.patch(upload, at: 5, pattern(5), [origin]),
      try server.ask(
        "PUT", "/n", [origin, ("Upload-Complete", "?0"), ("Upload-Draft-Interop-Version", "3")], body: [1]),
    ]
    let readable = [
      "cache-control", "content-language", "content-length", "content-type", "expires", "last-modified", "pragma",
    ]
    // Fields that the browser itself uses.
    let own = [
      "access-control-allow-origin", "access-control-expose-headers", "connection", "content-security-policy", "date",
      "vary", "x-content-type-options",
    ]
    for answer in answers {
      let listed = answer.headers.list("Access-Control-Expose-Headers").map { $0.lowercased() }
      for name in answer.headers.fields.map({ $0.name.lowercased() }) where !(readable + own).contains(name) {
        #expect(listed.contains(name), "\(answer.status) \(name)")
      }
    }
  }
}
