import BlobServer
import Blobs
import TestSupport
import Testing

/// What URLSession and the photo uploader of iOS send to a server, as Apple's documentation and the drafts of resumable
/// uploads show it. Nothing here was recorded from a device.
struct AppleClientTests {
  private let bytes = pattern(3_000_000)

  // MARK: OPTIONS

  /// Apple's documentation shows 200 and the size as a bare number. Drafts from interop version 6 on have a dictionary.
  @Test(arguments: [
    (3, "1000"), (5, "1000"), (6, "max-size=1000, expires=86400"), (8, "max-size=1000, max-age=86400"),
    (nil, "max-size=1000, max-age=86400"),
  ])
  func optionsHasTheLimitInTheFormOfTheVersion(version: Int?, limit: String) throws {
    let server = try TestServer { $0.maxSize = 1000 }
    for path in ["/", "/upload", "/2026/IMG_0001.HEIC"] {
      let answer = try server.ask("OPTIONS", path, interop(version))
      #expect(answer.status == 200)
      #expect(answer["Upload-Limit"] == limit)
      #expect(answer["Content-Length"] == "0")
    }
  }

  /// The field is never missing, since it is what the client asks for.
  @Test func optionsOfAServerWithoutALimitHasTheLargestNumber() throws {
    let server = try TestServer()
    #expect(try server.ask("OPTIONS", "/upload", interop(3))["Upload-Limit"] == "999999999999999")
  }

  @Test func aReadOnlyServerOffersNoUploads() throws {
    let server = try TestServer { $0.isReadOnly = true }
    for version in [3, 8] {
      let answer = try server.ask("OPTIONS", "/upload", interop(version))
      #expect(answer.status == 501)
      #expect(answer["Upload-Limit"] == nil)
    }
    #expect(try server.ask("OPTIONS", "/").status == 200, "browsers ask so as well")
  }

  // MARK: Uploads

  /// A task over a file sends the whole body, and learns the upload's URL before its second half has left.
  @Test(arguments: [3, 5, 6, 8], ["PUT", "POST"]) func aClientGetsTheUploadURLWhileItSendsTheBody(
    version: Int, method: String
  ) throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head(method, "/2026/IMG_0001.HEIC", creation(version))
    try client.send(Array(bytes[..<1_500_000]))
    let interim = try client.readHead()
    #expect(interim.status == 104)
    #expect(interim["Upload-Draft-Interop-Version"] == "\(version)")
    #expect(interim["Location"]?.hasPrefix("/.fullbore-upload/") == true)
    try client.send(Array(bytes[1_500_000...]))
    let answer = try client.readHead()
    #expect(answer.status == 201)
    #expect(answer["Upload-Offset"] == "\(bytes.count)")
    #expect(answer["Upload-Incomplete"] == (version == 3 ? "?0" : nil))
    #expect(answer["Upload-Complete"] == (version == 3 ? nil : "?1"))
    #expect(answer["Location"] == "/2026/IMG_0001.HEIC")
    #expect(server.folder.read("2026/IMG_0001.HEIC") == bytes)
  }

  /// The example in "Uploading asset resources in the background" has no version.
  @Test func theExampleOfAppleIsAnsweredAsItShows() throws {
    let server = try TestServer()
    server.folder.makeFolder("upload")
    let client = try server.client()
    try client.head(
      "POST", "/upload", [("Upload-Incomplete", "?0"), ("Content-Length", "\(bytes.count)")])
    let interim = try client.readHead()
    #expect(interim.status == 104)
    let upload = try #require(interim["Location"])
    try client.send(bytes)
    let answer = try client.readHead()
    #expect(answer.status == 201)
    #expect(answer["Upload-Offset"] == "\(bytes.count)")
    #expect(answer["Location"] != nil)
    let name = try #require(TestFolder.names(server.folder.path.appending("upload")).first)
    #expect(upload == "/.fullbore-upload/\(name)", "without a name in the request, the upload's id is the file's name")
    #expect(server.folder.read(BytePath("upload/\(name)")) == bytes)
  }

  @Test func aPartOfSuchAnUploadIsNotPublished() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head("PUT", "/x", [("Upload-Incomplete", "?1"), ("Content-Length", "2")])
    try client.send([1, 2])
    #expect(try client.readHead().status == 104)
    let answer = try client.answer()
    #expect(answer.status == 201)
    #expect(answer["Upload-Incomplete"] == "?1")
    #expect(server.folder.read("x") == nil)
  }

  // MARK: Resumption

  /// The connection breaks in mid-upload, or the server ends. The client asks and sends the rest: HEAD, PATCH. A server
  /// that is killed is in `EndToEndTests`.
  @Test(arguments: [3, 5, 6, 8], [false, true]) func anUploadGoesOnAfterACut(version: Int, serverEnds: Bool) throws {
    let folder = try TestFolder()
    let cut = 1_234_567
    var first: TestServer? = try TestServer(over: folder)
    let upload = try begin(#require(first), version, cut: cut)
    if serverEnds { first = nil }
    let server = try first ?? TestServer(over: folder)
    #expect(try eventually { try server.ask("HEAD", upload, interop(version))["Upload-Offset"] == "\(cut)" })
    let asked = try server.ask("HEAD", upload, interop(version))
    #expect(asked.status == 204)
    #expect(asked["Upload-Incomplete"] == (version == 3 ? "?1" : nil))
    #expect(asked["Upload-Complete"] == (version == 3 ? nil : "?0"))
    #expect(asked["Cache-Control"] == "no-store")
    let answer = try server.ask("PATCH", upload, append(version, at: cut), body: Array(bytes[cut...]))
    #expect(answer.status == 201)
    #expect(answer["Upload-Incomplete"] == (version == 3 ? "?0" : nil))
    #expect(answer["Upload-Complete"] == (version == 3 ? nil : "?1"))
    #expect(folder.read("IMG_0001.HEIC") == bytes)
  }

  /// Without the interop version, no interim response may be sent, so only a careful creation can be resumed.
  @Test func theFinalFormGoesOnAfterACut() throws {
    let folder = try TestFolder()
    var upload = ""
    do {
      let server = try TestServer(over: folder)
      let created = try server.ask(
        "POST", "/IMG_0001.HEIC", [("Upload-Complete", "?0"), ("Upload-Length", "\(bytes.count)")], body: [])
      #expect(created.status == 201)
      upload = try #require(created["Location"])
      let client = try server.client()
      try client.head("PATCH", upload, append(nil, at: 0) + [("Content-Length", "\(bytes.count)")])
      try client.send(Array(bytes[..<1_000_000]))
      #expect(try eventually { folder.sizeOfKept == 1_000_000 })
    }
    let server = try TestServer(over: folder)
    let asked = try server.ask("HEAD", upload)
    #expect(asked["Upload-Offset"] == "1000000")
    #expect(asked["Upload-Complete"] == "?0")
    #expect(asked["Upload-Length"] == "\(bytes.count)")
    #expect(try server.ask("PATCH", upload, append(nil, at: 1_000_000), body: Array(bytes[1_000_000...])).status == 201)
    #expect(folder.read("IMG_0001.HEIC") == bytes)
  }

  /// The response is lost: the client asks, and learns that nothing is left to send.
  @Test(arguments: [3, 8]) func aLostResponseIsFoundByAsking(version: Int) throws {
    let server = try TestServer()
    var upload = ""
    do {
      let client = try server.client()
      try client.head("PUT", "/IMG_0001.HEIC", creation(version))
      upload = try #require(try client.readHead()["Location"])
      try client.send(bytes)
      #expect(try eventually { server.folder.read("IMG_0001.HEIC") == bytes })
    }
    let asked = try server.ask("HEAD", upload, interop(version))
    #expect(asked.status == 204)
    #expect(asked["Upload-Offset"] == "\(bytes.count)")
    #expect(asked[version == 3 ? "Upload-Incomplete" : "Upload-Complete"] == (version == 3 ? "?0" : "?1"))
  }

  /// The credentials that the destination has been given go with every request, HEAD and PATCH included.
  @Test func everyRequestNeedsTheToken() throws {
    let server = try TestServer { $0.token = "secret" }
    let bearer = ("Authorization", "Bearer secret")
    #expect(try server.ask("PUT", "/x", creation(8).dropLast() + [], body: [1]).status == 401)
    let client = try server.client()
    try client.head("PUT", "/x", creation(8) + [bearer])
    let upload = try #require(try client.readHead()["Location"])
    #expect(try server.ask("HEAD", upload, interop(8)).status == 401)
    #expect(try server.ask("HEAD", upload, interop(8) + [bearer]).status == 204)
    #expect(try server.ask("OPTIONS", "/x", interop(8)).status == 200, "a preflight has no credentials")
  }

  // MARK: Requests

  /// Sends the first `cut` bytes of a whole body, and closes the connection.
  private func begin(_ server: TestServer, _ version: Int, cut: Int) throws -> String {
    let client = try server.client()
    try client.head("PUT", "/IMG_0001.HEIC", creation(version))
    let upload = try #require(try client.readHead()["Location"])
    try client.send(Array(bytes[..<cut]))
    #expect(try eventually { server.folder.sizeOfKept == cut })
    return upload
  }

  private func interop(_ version: Int?) -> [(String, String)] {
    version.map { [("Upload-Draft-Interop-Version", "\($0)")] } ?? []
  }

  private func end(_ version: Int?) -> (String, String) {
    version == 3 ? ("Upload-Incomplete", "?0") : ("Upload-Complete", "?1")
  }

  /// From version 6 on, clients also tell the length of the file.
  private func creation(_ version: Int) -> [(String, String)] {
    interop(version) + [end(version), ("Content-Type", "image/heic")]
      + (version < 6 ? [] : [("Upload-Length", "\(bytes.count)")]) + [("Content-Length", "\(bytes.count)")]
  }

  private func append(_ version: Int?, at offset: Int) -> [(String, String)] {
    interop(version) + [end(version), ("Upload-Offset", "\(offset)")]
      + (version.map { $0 < 6 } == true ? [] : [("Content-Type", "application/partial-upload")])
  }

  /// nginx, as a reverse proxy without buffering, takes an interim response for the final one.
  @Test(arguments: [("Connection", "close"), ("X-Real-IP", "192.0.2.1")])
  func aProxyThatKnowsNoInterimResponsesGetsNone(_ field: (String, String)) throws {
    let server = try TestServer()
    let client = try server.client()
    let head = [("Upload-Draft-Interop-Version", "8"), ("Upload-Complete", "?0"), field]
    try client.head("PUT", "/a", head + [("Transfer-Encoding", "chunked")])
    let bytes = pattern(3 << 20)
    try client.send(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n0\r\n\r\n".utf8))
    let answer = try client.readHead()
    #expect(answer.status == 201 && answer["Upload-Offset"] == "\(bytes.count)", "\(answer.status)")
  }
}
