import BlobServer
import Blobs
import Testing

struct TusTests {
  @Test func anUploadInPartsArrivesWhole() throws {
    let server = try TestServer()
    let bytes = pattern(1_000_000)
    let upload = try server.create("movie.mov", length: bytes.count, in: "/a/b/")
    #expect(try server.offset(upload) == 0)
    let first = try server.patch(upload, at: 0, Array(bytes.prefix(400_000)))
    #expect(first.status == 204)
    #expect(first["Upload-Offset"] == "400000")
    #expect(first["Upload-Expires"]?.hasSuffix("GMT") == true)
    #expect(first["Tus-Resumable"] == "1.0.0")
    #expect(server.folder.read("a/b/movie.mov") == nil)
    #expect(try server.offset(upload) == 400_000)
    let last = try server.patch(upload, at: 400_000, Array(bytes.dropFirst(400_000)))
    #expect(last.status == 204)
    #expect(last["Upload-Offset"] == "1000000")
    #expect(server.folder.read("a/b/movie.mov") == bytes)
    #expect(try server.offset(upload) == 1_000_000)
  }

  @Test func largeMetadataFitsBesideABody() throws {
    let server = try TestServer()
    let note = String(repeating: "A", count: 16_000)
    let metadata = "filename \(base64("big")),note \(note)"
    let client = try server.client()
    let begun = try client.ask(
      "POST", "/",
      [tus, ("Content-Type", octets), ("Upload-Length", "500000"), ("Upload-Metadata", metadata)],
      body: pattern(300_000))
    #expect(begun.status == 201)
    for _ in 0..<3 {
      let answer = try client.ask("HEAD", try #require(begun["Location"]), [tus])
      #expect(answer["Upload-Metadata"] == metadata)
      #expect(answer["Upload-Offset"] == "300000")
    }
  }

  @Test func headReturnsLengthAndMetadata() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 5, metadata: ",filetype \(base64("a/b")),flag")
    let answer = try server.ask("HEAD", upload, [tus])
    #expect(answer["Upload-Length"] == "5")
    #expect(answer["Upload-Metadata"] == "filename \(base64("x")),filetype \(base64("a/b")),flag")
    #expect(answer["Cache-Control"] == "no-store")
    #expect(answer["Upload-Expires"] != nil)
    #expect(answer["Upload-Defer-Length"] == nil)
  }

  @Test func theTargetIsNamedByMetadata() throws {
    let server = try TestServer()
    func put(_ folder: String, _ metadata: String) throws -> Int {
      try server.ask(
        "POST", folder,
        [tus, ("Upload-Length", "1"), ("Upload-Metadata", metadata), ("Content-Type", octets)], body: [1]
      ).status
    }
    #expect(try put("/x/", "filename \(base64("c")),relativePath \(base64("a/b/c"))") == 201)
    #expect(server.folder.read("x/a/b/c") == [1])
    #expect(try put("/x/y", "filename \(base64("d"))") == 201)
    #expect(server.folder.read("x/d") == [1])
    #expect(try put("/", "filename \(base64("e")),relativePath \(base64("null"))") == 201)
    #expect(server.folder.read("e") == [1])
    #expect(try put("/nameless/", "") == 201)
    #expect(TestFolder.names(server.folder.path.appending("nameless")).count == 1)
  }

  @Test func creationWithUploadTakesTheFirstBytes() throws {
    let server = try TestServer()
    let bytes = pattern(10_000)
    let head = [tus, ("Content-Type", octets), ("Upload-Length", "10000")]
    let whole = try server.ask(
      "POST", "/", head + [("Upload-Metadata", "filename \(base64("whole"))")], body: bytes)
    #expect(whole.status == 201)
    #expect(whole["Upload-Offset"] == "10000")
    #expect(server.folder.read("whole") == bytes)
    #expect(server.folder.kept.isEmpty)
    #expect(try server.offset(whole["Location"]!) == 10_000)

    let begun = try server.ask(
      "POST", "/", head + [("Upload-Metadata", "filename \(base64("begun"))")], body: Array(bytes.prefix(3000)))
    #expect(begun.status == 201)
    #expect(begun["Upload-Offset"] == "3000")
    #expect(try server.patch(begun["Location"]!, at: 3000, Array(bytes.dropFirst(3000))).status == 204)
    #expect(server.folder.read("begun") == bytes)
  }

  @Test func aCutCreationLeavesNothing() throws {
    let server = try TestServer()
    do {
      let client = try server.client()
      try client.head(
        "POST", "/", [tus, ("Content-Type", octets), ("Upload-Length", "1000"), ("Content-Length", "1000")])
      try client.send(pattern(500))
      #expect(try eventually { !server.folder.kept.isEmpty })
    }
    #expect(try eventually { server.folder.kept.isEmpty })
  }

  @Test func zeroBytesAreCompleteAtOnce() throws {
    let server = try TestServer()
    let upload = try server.create("empty", length: 0)
    #expect(server.folder.read("empty") == [])
    #expect(try server.offset(upload) == 0)
  }

  @Test func theLengthMayComeLast() throws {
    let server = try TestServer()
    let upload = try server.create("stream", length: nil)
    #expect(try server.ask("HEAD", upload, [tus])["Upload-Defer-Length"] == "1")
    #expect(try server.patch(upload, at: 0, [1, 2, 3]).status == 204)
    #expect(try server.patch(upload, at: 3, [], [("Upload-Length", "2")]).status == 400)
    #expect(try server.patch(upload, at: 3, [4], [("Upload-Length", "5")]).status == 204)
    #expect(try server.ask("HEAD", upload, [tus])["Upload-Length"] == "5")
    #expect(try server.patch(upload, at: 4, [5], [("Upload-Length", "6")]).status == 400)
    #expect(try server.patch(upload, at: 4, [5]).status == 204)
    #expect(server.folder.read("stream") == [1, 2, 3, 4, 5])
    let other = try server.create("other", length: nil)
    #expect(try server.patch(other, at: 0, [1, 2]).status == 204)
    #expect(try server.patch(other, at: 2, [], [("Upload-Length", "2")]).status == 204)
    #expect(server.folder.read("other") == [1, 2])
  }

  @Test func aPatchOfNothingIsFine() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 2)
    let answer = try server.patch(upload, at: 0, [])
    #expect(answer.status == 204)
    #expect(answer["Upload-Offset"] == "0")
  }

  @Test func versionsAreChecked() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 2)
    let other = [("HEAD", upload), ("PATCH", upload), ("DELETE", upload), ("POST", "/")]
    // HEAD and DELETE without any version belong to the IETF protocol.
    for (headers, asked) in [([], [other[1], other[3]]), ([("Tus-Resumable", "0.2.2")], other)] {
      for (method, path) in asked {
        let answer = try server.ask(method, path, headers + [("Upload-Length", "2")], body: [])
        #expect(answer.status == 412, "\(method)")
        #expect(answer["Tus-Version"] == "1.0.0")
      }
    }
    #expect(try server.offset(upload) == 0)
  }

  @Test func wrongPatchesChangeNothing() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 10)
    #expect(try server.patch(upload, at: 0, [1, 2]).status == 204)
    #expect(try server.patch(upload, at: 1, [9]).status == 409)
    #expect(try server.patch(upload, at: 3, [9]).status == 409)
    #expect(try server.patch(upload, at: 2, pattern(9)).status == 413)
    #expect(try server.ask("PATCH", upload, [tus, ("Upload-Offset", "2")], body: [9]).status == 415)
    for offset in ["", "-1", "+2", " ", "2.0", "9223372036854775808", "0x2"] {
      let answer = try server.ask(
        "PATCH", upload, [tus, ("Content-Type", octets), ("Upload-Offset", offset)], body: [9])
      #expect(answer.status == 400, "'\(offset)'")
    }
    #expect(try server.ask("PATCH", upload, [tus, ("Content-Type", octets)], body: [9]).status == 400)
    #expect(try server.offset(upload) == 2)
  }

  @Test func chunkedBytesPastTheLengthAreRefused() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 3)
    let client = try server.client()
    try client.head(
      "PATCH", upload,
      [tus, ("Content-Type", octets), ("Upload-Offset", "0"), ("Transfer-Encoding", "chunked")])
    try client.send(Array("4\r\nabcd\r\n0\r\n\r\n".utf8))
    #expect(try client.answer().status == 413)
    #expect(try server.offset(upload) == 0)
  }

  @Test func wrongCreationsAreRefused() throws {
    let server = try TestServer { $0.maxSize = 1000 }
    let wrong: [([(String, String)], Int)] = [
      ([], 400), ([tus], 400), ([tus, ("Upload-Length", "-1")], 400), ([tus, ("Upload-Length", "a")], 400),
      ([tus, ("Upload-Defer-Length", "2")], 400), ([tus, ("Upload-Length", "1"), ("Upload-Defer-Length", "1")], 400),
      ([tus, ("Upload-Length", "1001")], 413), ([tus, ("Upload-Length", "1"), ("Upload-Metadata", "a b c")], 400),
      ([tus, ("Upload-Length", "1"), ("Upload-Metadata", "a !!!!")], 400),
      ([tus, ("Upload-Length", "1"), ("Upload-Metadata", "a YQ==,a YQ==")], 400),
    ]
    for (headers, status) in wrong {
      #expect(try server.ask("POST", "/", headers, body: []).status == status, "\(headers)")
    }
    let typeless = try server.ask("POST", "/", [tus, ("Upload-Length", "1")], body: [1])
    #expect(typeless.status == 415)
    let long = try server.ask("POST", "/", [tus, ("Upload-Length", "1"), ("Content-Type", octets)], body: [1, 2])
    #expect(long.status == 413)
    #expect(server.folder.kept.isEmpty)
  }

  @Test func existingNamesAreKept() throws {
    let server = try TestServer()
    let bytes = pattern(5000)
    server.folder.write("a", bytes)
    let name = ("Upload-Metadata", "filename \(base64("a"))")
    #expect(try server.ask("POST", "/", [tus, ("Upload-Length", "4999"), name], body: []).status == 409)

    let same = try server.create("a", length: 5000)
    #expect(try server.patch(same, at: 0, bytes).status == 204)
    #expect(try server.offset(same) == 5000)

    let other = try server.create("a", length: 5000)
    #expect(try server.patch(other, at: 0, pattern(5000, seed: 3)).status == 409)
    #expect(try server.ask("HEAD", other, [tus]).status == 410)
    #expect(server.folder.read("a") == bytes)

    let over = try server.create("a", length: 2, metadata: ",overwrite \(base64("true"))")
    #expect(try server.patch(over, at: 0, [8, 9]).status == 204)
    #expect(server.folder.read("a") == [8, 9])
  }

  @Test func terminationForgets() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 10)
    #expect(try server.patch(upload, at: 0, [1]).status == 204)
    #expect(try server.ask("DELETE", upload, [tus]).status == 204)
    for method in ["HEAD", "DELETE"] { #expect(try server.ask(method, upload, [tus]).status == 410) }
    #expect(try server.patch(upload, at: 1, [1]).status == 410)
    #expect(server.folder.kept.isEmpty)

    let done = try server.create("done", length: 1)
    #expect(try server.patch(done, at: 0, [1]).status == 204)
    #expect(try server.ask("DELETE", done, [tus]).status == 204)
    #expect(server.folder.read("done") == [1])
  }

  @Test func otherMethodsCanBeDisguised() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 2)
    let answer = try server.ask(
      "POST", upload,
      [tus, ("Content-Type", octets), ("Upload-Offset", "0"), ("X-HTTP-Method-Override", "PATCH")], body: [1])
    #expect(answer["Upload-Offset"] == "1")
    #expect(try server.ask("POST", upload, [tus, ("X-HTTP-Method-Override", "DELETE")], body: []).status == 204)
  }

  @Test(arguments: ["00000000000000000000000000000000", "x", "", "../lock", "0000000000000000000000000000000"])
  func unknownUploadsAreNotFound(_ id: String) throws {
    let server = try TestServer()
    let answer = try server.ask("HEAD", "/.fullbore-upload/\(id)", [tus])
    #expect(answer.status == 404)
    #expect(answer["Upload-Offset"] == nil)
  }
}

let octets = "application/offset+octet-stream"
