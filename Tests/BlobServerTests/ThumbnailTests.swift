import BlobHTTP
import BlobServer
import Blobs
import Synchronization
import TestSupport
import Testing

/// The previews in pictures. BlobMediaTests test what finds them.
struct ThumbnailTests {
  private let preview: [UInt8] = [0xFF, 0xD8, 0xFF, 1, 2, 3]

  private func server(_ change: (inout ServerOptions) -> Void = { _ in }) throws -> TestServer {
    try TestServer { [preview] in
      $0.thumbnail = { start in
        start.first == 1 ? preview : start.first == 2 ? [UInt8](repeating: 0, count: 65_537) : nil
      }
      change(&$0)
    }
  }

  @Test func aPictureShowsItsPreview() throws {
    let sizes = Mutex<[Int]>([])
    let server = try server {
      let find = $0.thumbnail!
      $0.thumbnail = { start in
        sizes.withLock { $0.append(start.count) }
        return find(start)
      }
    }
    server.folder.write("a.JPG", [UInt8](repeating: 1, count: 1 << 20))
    let answer = try server.ask("GET", "/a.JPG?thumbnail")
    #expect(answer.status == 200 && answer.body == preview && answer["Content-Type"] == "image/jpeg")
    #expect(answer["X-Content-Type-Options"] == "nosniff" && answer["Content-Security-Policy"] == "sandbox")
    let etag = try #require(answer["ETag"])
    #expect(try etag != server.ask("HEAD", "/a.JPG")["ETag"])
    let again = try server.ask("GET", "/a.JPG?thumbnail", [("If-None-Match", etag)])
    #expect(again.status == 304 && again["Content-Length"] == nil)
    #expect(sizes.withLock { $0 } == [256 << 10])
    let head = try server.client()
    try head.head("HEAD", "/a.JPG?thumbnail")
    #expect(try head.answer(hasBody: false)["Content-Length"] == "6")
    // Whatever range is asked for, the preview comes as a whole.
    #expect(try server.ask("GET", "/a.JPG?thumbnail", [("Range", "bytes=1-2")]).body == preview)
  }

  @Test func aFileWithoutAPreviewHasNone() throws {
    let server = try server()
    server.folder.write("none.jpg", [0])
    server.folder.write("empty.jpg", [])
    server.folder.write("large.jpg", [2])
    server.folder.write("a.html", [1])
    server.folder.makeFolder("folder.jpg")
    for path in ["/none.jpg", "/empty.jpg", "/large.jpg", "/a.html", "/missing.jpg"] {
      #expect(try server.ask("GET", "\(path)?thumbnail").status == 404, "\(path)")
    }
    #expect(try server.ask("GET", "/none.jpg?x=thumbnail&thumbnails").body == [0])
    #expect(try server.ask("GET", "/folder.jpg/?thumbnail").status == 200)  // the list
    #expect(try TestServer(over: server.folder) { $0.isReadOnly = true }.ask("GET", "/none.jpg?thumbnail").body == [0])
    let names = try self.server { $0.reading = .names }
    names.folder.write("a.jpg", [1])
    for method in ["GET", "HEAD"] { #expect(try names.ask(method, "/a.jpg?thumbnail").status == 403) }
  }

  @Test func aListRefersToPreviews() throws {
    let json = [("Authorization", "Bearer secret"), ("Accept", "application/json")]
    let server = try server { $0.token = "secret" }
    for name in ["a.jpg", "b.HEIC", "c.png", "d.mov", "e"] { server.folder.write(BytePath(name), [1]) }
    server.folder.makeFolder("f.jpg")
    let list = try server.ask("GET", "/", json).text
    let urls = list.matches(of: /"thumbnail":"\.(\/[^"]+)"/).map { String($0.1) }
    #expect(urls.count == 2 && list.matches(of: /"thumbnail":null/).count == 4, "\(list)")
    for url in urls { #expect(try server.ask("GET", url).body == preview, "\(url)") }
    #expect(try server.ask("GET", "/a.jpg?thumbnail").status == 401)
    #expect(try server.ask("GET", urls[0].replacing("a.jpg", with: "b.HEIC")).status == 401)
    let without = try TestServer()
    without.folder.write("a.jpg", [1])
    #expect(try without.ask("GET", "/", [json[1]]).text.contains("\"thumbnail\":null"))
  }
}
