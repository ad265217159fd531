import BlobServer
import Blobs
import Testing

/// Failures of the server's own files. The client's request was correct, so the status is at least 500: the client may
/// try again, and the bytes that the server has acknowledged stay.
struct OwnFailureTests {
  private let version = ("Upload-Draft-Interop-Version", "8")

  @Test func aRecordThatCannotBeWrittenEndsNoUpload() throws {
    let folder = try TestFolder()
    try folder.withoutPrivileges {
      let server = try TestServer(over: folder)
      let first = [version, ("Upload-Complete", "?0")]
      let (chunked, plain) = (
        try #require(try server.ask("PUT", "/a", first, body: [1, 2])["Location"]),
        try #require(try server.ask("PUT", "/b", first, body: [1, 2])["Location"])
      )
      let deferred = try server.create("c", length: nil)
      let part = try #require(
        try server.ask("POST", "/", [tus, ("Upload-Length", "0"), ("Upload-Concat", "partial")], body: [])["Location"])
      let last = [version, ("Upload-Complete", "?1"), ("Content-Type", "application/partial-upload")]
      let client = try server.client()
      try client.head("PATCH", chunked, last + [("Upload-Offset", "2"), ("Transfer-Encoding", "chunked")])
      try client.send(Array("1\r\n3\r\n".utf8))
      #expect(try eventually { folder.sizeOfKept == 5 })
      folder.allowWriting(".fullbore", false)
      defer { folder.allowWriting(".fullbore", true) }
      try client.send(Array("0\r\n\r\n".utf8))
      let final = [tus, ("Upload-Concat", "final;\(part)"), ("Upload-Metadata", "filename \(base64("d"))")]
      var statuses = [try client.answer().status]
      statuses.append(try server.ask("PATCH", plain, last + [("Upload-Offset", "2")], body: [3]).status)
      statuses.append(try server.patch(deferred, at: 0, [1], [("Upload-Length", "1")]).status)
      statuses.append(try server.ask("POST", "/", final, body: []).status)
      statuses.append(try server.ask("PUT", "/e", body: [1]).status)
      statuses.append(try server.ask("POST", "/", [tus, ("Upload-Length", "3")], body: []).status)
      #expect(statuses == [500, 500, 500, 500, 500, 500])
      folder.allowWriting(".fullbore", true)
      #expect(try server.ask("HEAD", chunked, [version])["Upload-Offset"] == "3")
      #expect(try server.ask("HEAD", plain, [version])["Upload-Offset"] == "2")
      #expect(try server.ask("PATCH", chunked, last + [("Upload-Offset", "3")], body: []).status / 100 == 2)
      #expect(try server.ask("PATCH", plain, last + [("Upload-Offset", "2")], body: [3]).status / 100 == 2)
      #expect(try server.patch(deferred, at: 0, [1], [("Upload-Length", "1")]).status == 204)
      #expect(try server.ask("POST", "/", final, body: []).status == 201)
      #expect(
        [folder.read("a"), folder.read("b"), folder.read("c"), folder.read("d")] == [[1, 2, 51], [1, 2, 3], [1], []])
    }
  }
}
