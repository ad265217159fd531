import BlobServer
import Testing

/// Fetch Standard, "CORS protocol".
struct CrossOriginTests {
  static let app = "https://app.example"

  private func lists(_ answer: WireClient.Answer, _ name: String, _ wanted: String...) -> Bool {
    let listed = answer.headers.list(name).map { $0.lowercased() }
    return wanted.allSatisfy { listed.contains($0.lowercased()) }
  }

  @Test func preflightsTellWhatMayBeSent() throws {
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
      #expect(answer.status == 204)
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

  @Test func othersAreNotTold() throws {
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
}
