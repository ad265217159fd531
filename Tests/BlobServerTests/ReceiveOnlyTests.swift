import BlobServer
import Blobs
import Platform
import TestSupport
import Testing

/// A server whose files may not be read tells a client no more of them than whether a name is taken.
struct ReceiveOnlyTests {
  private let server = try! TestServer { $0.reading = .nothing }
  private let resumable = ("Upload-Draft-Interop-Version", "8")

  init() {
    server.folder.write("k.txt", Array("thirteen byte".utf8))
    server.folder.makeFolder("sub")
    server.folder.write("sub/x", [1])
  }

  /// The requests by which a client can offer a file of 3 bytes.
  private static let ways = ["put", "post", "tus", "resumable", "form"]

  private func offer(
    _ way: String, _ path: String, _ body: [UInt8] = [7, 7, 7], _ more: [(String, String)] = []
  ) throws -> RawHTTPClient.Answer {
    switch way {
    case "put": return try server.ask("PUT", path, more, body: body)
    case "post": return try server.ask("POST", path, more, body: body)
    case "resumable":
      let client = try server.client()
      var answer = try client.ask("PUT", path, [resumable, ("Upload-Complete", "?1")] + more, body: body)
      while answer.status == 104 { answer = try client.answer() }
      return answer
    case "tus":
      let metadata = ("Upload-Metadata", "relativePath \(base64(String(path.dropFirst())))")
      let type = ("Content-Type", "application/offset+octet-stream")
      return try server.ask(
        "POST", "/", [tus, ("Upload-Length", "\(body.count)"), metadata, type] + more, body: body)
    default:
      let parts = path.split(separator: "/")
      let head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(parts.last!)\"\r\n\r\n"
      let type = ("Content-Type", "multipart/form-data; boundary=b")
      let place = "/" + parts.dropLast().map { "\($0)/" }.joined()
      return try server.ask("POST", place, [type] + more, body: Array(head.utf8) + body + Array("\r\n--b--\r\n".utf8))
    }
  }

  @Test(arguments: ways) func theRefusalOfATakenNameShowsNeitherSizeNorKind(_ way: String) throws {
    let taken = try offer(way, "/k.txt")
    #expect(taken.status == 409 && !taken.text.contains("13"), "\(taken.text)")
    let sameLength = try offer(way, "/k.txt", Array("other content".utf8))
    let folder = try offer(way, "/sub")
    for answer in [sameLength, folder] {
      #expect(answer.status == 409 && answer["ETag"] == nil && answer["Last-Modified"] == nil)
      #expect(
        answer.text.replacing("/sub", with: "/k.txt").replacing("\"sub\"", with: "\"k.txt\"") == taken.text,
        "\(answer.text) instead of \(taken.text)")
    }
    let below = try offer(way, "/k.txt/x")
    let text = below.text.replacing("/k.txt/x", with: "/k.txt").replacing("\"x\"", with: "\"k.txt\"")
    #expect(below.status == 409 && text == taken.text, "\(below.text)")
    #expect(server.folder.read("k.txt") == Array("thirteen byte".utf8))
  }

  /// A client that has lost the answer to its upload sends the same bytes again. That the bytes are there is told, and
  /// neither the version nor the time of the file.
  @Test(arguments: ways) func theSameBytesAreReceivedWithoutAVersion(_ way: String) throws {
    let answer = try offer(way, "/k.txt", Array("thirteen byte".utf8), [("X-OC-Mtime", "1700000000")])
    #expect([200, 201, 204].contains(answer.status), "\(answer.status) \(answer.text)")
    #expect(answer["ETag"] == nil && answer["X-OC-Mtime"] == nil && !answer.text.contains("etag"), "\(answer.text)")
    let status = server.folder.path.appending("k.txt").withCString { path in
      var status = stat()
      return stat(path, &status) == 0 ? status.st_mtim.tv_sec : 0
    }
    let time = try server.ask(
      "PUT", "/k.txt", [("X-OC-Mtime", "\(status)")], body: Array("thirteen byte".utf8))
    #expect(time.status == 204 && time["X-OC-Mtime"] == nil)
    // The client's own new file has a version, with which it may replace it.
    let own = try server.ask("PUT", "/own", body: [1])
    let tag = try #require(own["ETag"])
    #expect(own.status == 201)
    #expect(try server.ask("PUT", "/own", [("If-Match", tag)], body: [2]).status == 204)
    #expect(server.folder.read("own") == [2])
  }

  /// Of a file that may not be read, no client has a date to compare, so the condition is ignored for a request that
  /// replaces nothing, and refused for one that deletes. RFC 9110 §13.1.4.
  @Test func aConditionOnTheTimeShowsNothingOfAFile() throws {
    let answers = try ["Tue, 15 Nov 1994 12:45:26 GMT", "Fri, 15 Nov 2999 12:45:26 GMT"].map {
      try server.ask("PUT", "/k.txt", [("If-Unmodified-Since", $0)], body: [1])
    }
    #expect(answers.map(\.status) == [409, 409] && answers[0].text == answers[1].text)
    let deleting = try TestServer {
      $0.reading = .nothing
      $0.allowsDelete = true
    }
    deleting.folder.write("k", [1])
    deleting.folder.makeFolder("sub")
    for date in ["Tue, 15 Nov 1994 12:45:26 GMT", "Fri, 15 Nov 2999 12:45:26 GMT"] {
      #expect(try deleting.ask("DELETE", "/k", [("If-Unmodified-Since", date)]).status == 403)
    }
    #expect(deleting.folder.read("k") == [1])
    #expect(try deleting.ask("DELETE", "/sub").status == 404)
    #expect(try deleting.ask("DELETE", "/k").status == 204)
  }

  @Test func theRefusalOfAnUploadOfUnknownLengthShowsNoSize() throws {
    let upload = try server.create("k.txt", length: nil)
    let answer = try server.ask(
      "PATCH", upload,
      [tus, ("Upload-Offset", "0"), ("Upload-Length", "3"), ("Content-Type", "application/offset+octet-stream")],
      body: [1, 2, 3])
    #expect(answer.status == 409 && !answer.text.contains("13"), "\(answer.text)")
  }
}
