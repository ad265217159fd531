import Blobs
import Testing

@testable import BlobServer

struct PathTests {
  static let attacks = [
    "/../x", "/a/../x", "/%2e%2e/x", "/%2E./x", "/./x", "/a//x", "//x", "/a%00b", "/a%2Fb", "/%2F", "/%zz", "/%4",
    "/.fullbore/x", "/.fullbore/lock", "/.FULLBORE/x", "/%2efullbore/x", "/sub/.fullbore/x",
    "/.fullbore-upload/x/y", "/.fullbore-upload", "/" + String(repeating: "n", count: 256),
  ]

  @Test(arguments: attacks)
  func noMethodLeavesTheFolder(_ path: String) throws {
    let server = try TestServer { $0.allowsDelete = true }
    for method in ["GET", "HEAD", "PUT", "DELETE"] {
      let answer = try server.ask(method, path, body: method == "PUT" ? [1] : nil)
      #expect([400, 403, 404, 412].contains(answer.status), "\(method) \(path): \(answer.status)")
    }
    #expect(TestFolder.names(server.folder.path) == [".fullbore"])
    #expect(server.folder.kept.isEmpty)
  }

  @Test(
    arguments: [
      "../x", "/x", "a/../../x", "a//b", ".fullbore/x", "a/.fullbore", ".fullbore-upload", ".", "..", "a/", "a\0b",
    ])
  func tusNamesFollowTheSameRules(_ name: String) throws {
    let server = try TestServer()
    for key in ["filename", "relativePath"] {
      let answer = try server.ask(
        "POST", "/in/", [tus, ("Upload-Length", "1"), ("Upload-Metadata", "\(key) \(base64(name))")], body: [])
      #expect([400, 403].contains(answer.status), "\(name): \(answer.status)")
    }
    #expect(server.folder.kept.isEmpty)
  }

  @Test func symbolicLinksAreNotFollowed() throws {
    let outside = try TestFolder()
    outside.write("secret", [42])
    let server = try TestServer { $0.allowsDelete = true }
    server.folder.link("out", to: outside.path)
    server.folder.link("file", to: outside.path.appending("secret"))
    server.folder.link("up", to: outside.path)
    for path in ["/out/secret", "/out/", "/file", "/up/", "/out/new", "/file/x"] {
      let answer = try server.ask("GET", path)
      #expect([403, 404].contains(answer.status), "\(path): \(answer.status)")
    }
    for path in ["/out/new", "/out/secret", "/file", "/up/new"] {
      #expect([403, 409].contains(try server.ask("PUT", path, [("If-Match", "*")], body: [1]).status), "\(path)")
      #expect([403, 404, 409].contains(try server.ask("DELETE", path).status), "\(path)")
      let create = try server.ask(
        "POST", "/",
        [tus, ("Upload-Length", "0"), ("Upload-Metadata", "filename \(base64(String(path.dropFirst())))")],
        body: [])
      #expect([403, 409].contains(create.status), "\(path)")
    }
    #expect(outside.read("secret") == [42])
    #expect(outside.read("new") == nil)
    #expect(try !server.ask("GET", "/").text.contains("secret"))
  }

  @Test func theAbsoluteFormOfATargetIsUnderstood() throws {
    let server = try TestServer()
    server.folder.write("a", [1])
    #expect(try server.ask("GET", "http://localhost:\(server.server.port)/a").body == [1])
    #expect(try server.ask("GET", "http://evil.example/a").status == 421)
  }

  @Test func pathsDecodeOnce() throws {
    let (path, isFolder) = try ServedPath.fromURL("/a%2520b/%41/".utf8)
    #expect(path.components == ["a%20b", "A"])
    #expect(isFolder)
    #expect(path.url == "/a%2520b/A")
  }

  @Test func aLinkInThePlaceOfTheStoreIsRefused() throws {
    let folder = try TestFolder()
    let outside = try TestFolder()
    folder.link(".fullbore", to: outside.path)
    #expect(throws: ServerError.self) { try TestServer(over: folder) }
  }
}
