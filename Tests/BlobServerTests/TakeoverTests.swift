import BlobCrypto
import BlobHTTP
import Blobs
import TestSupport
import Testing

@testable import BlobServer

/// A client that returns is told the state of its upload and continues from there. Its older request, which may still
/// be in progress, must not change the upload any more.
struct TakeoverTests {
  private let version = ("Upload-Draft-Interop-Version", "8")
  private let chunked = ("Transfer-Encoding", "chunked")
  private let bytes = pattern(5000)

  private func patch(at offset: Int, isLast: Bool) -> [(String, String)] {
    [
      version, ("Upload-Complete", isLast ? "?1" : "?0"), ("Upload-Offset", "\(offset)"),
      ("Content-Type", "application/partial-upload"),
    ]
  }

  private func digest(_ name: String, _ bytes: some Sequence<UInt8>) -> (String, String) {
    (name, DigestField.text([.sha256: Digest.value(of: Array(bytes), .sha256)]))
  }

  private func sendChunk(_ client: RawHTTPClient, _ bytes: some Collection<UInt8>) throws {
    try client.send(Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10])
  }

  /// Sends the last chunk, and returns the final response after all interim ones.
  private func end(_ client: RawHTTPClient) throws -> RawHTTPClient.Answer {
    try client.send(Array("0\r\n\r\n".utf8))
    return try final(client)
  }

  private func final(_ client: RawHTTPClient) throws -> RawHTTPClient.Answer {
    var answer = try client.answer()
    while answer.status == 104 { answer = try client.answer() }
    return answer
  }

  /// A second client queries the upload and sends a part of the rest; then the first request ends, then the second one.
  private func takeOver(
    _ server: TestServer, _ upload: String, from older: RawHTTPClient, at offset: Int, expecting status: Int
  ) throws {
    let state = try server.ask("HEAD", upload, [version])
    #expect(state["Upload-Offset"] == "\(offset)" && state["Upload-Complete"] == "?0")
    let newer = try server.client()
    try newer.head("PATCH", upload, patch(at: offset, isLast: true) + [chunked])
    try sendChunk(newer, bytes[offset..<4000])
    #expect(try eventually { server.folder.sizeOfKept == 4000 })
    #expect(try end(older).status == status)
    #expect(server.folder.read("x") == nil)
    try sendChunk(newer, bytes[4000...])
    #expect(try end(newer).status == 201)
    #expect(server.folder.read("x") == bytes)
    let told = try server.ask("HEAD", "/x", [("Want-Repr-Digest", "sha-256=5")])["Repr-Digest"]
    #expect(told == digest("", bytes).1)
  }

  @Test(arguments: [true, false]) func anAppendEndsNothing(_ isLast: Bool) throws {
    let server = try TestServer()
    let upload = try #require(try server.ask("PUT", "/x", [version, ("Upload-Complete", "?0")])["Location"])
    let older = try server.client()
    try older.head("PATCH", upload, patch(at: 0, isLast: isLast) + [chunked])
    try sendChunk(older, bytes[..<2000])
    #expect(try eventually { server.folder.sizeOfKept == 2000 })
    try takeOver(server, upload, from: older, at: 2000, expecting: 409)
  }

  /// With a digest of its bytes, even a correct one, no bytes of the creation were stored when the other client asked.
  @Test(arguments: ["", "Content-Digest", "Want-Repr-Digest"]) func aCreationEndsNothing(_ field: String) throws {
    let server = try TestServer()
    let older = try server.client()
    let value = field == "Want-Repr-Digest" ? (field, "sha-256=1") : digest(field, bytes[..<2000])
    let more = field.isEmpty ? [] : [value]
    try older.head("PUT", "/x", [version, ("Upload-Complete", "?1"), chunked] + more)
    let upload = try #require(try older.readHead()["Location"])
    try sendChunk(older, bytes[..<2000])
    #expect(try eventually { server.folder.sizeOfKept == 2000 })
    try takeOver(server, upload, from: older, at: field == "Content-Digest" ? 0 : 2000, expecting: 409)
  }

  /// The digest announced at creation applies to the whole upload, and the other request makes it a different one.
  @Test func aPromiseIsNotTakenForKept() throws {
    let server = try TestServer()
    let older = try server.client()
    let promise = digest("Repr-Digest", bytes[..<2000])
    try older.head("PUT", "/x", [version, ("Upload-Complete", "?1"), chunked, promise])
    let upload = try #require(try older.readHead()["Location"])
    try sendChunk(older, bytes[..<2000])
    #expect(try eventually { server.folder.sizeOfKept == 2000 })
    #expect(try server.ask("HEAD", upload, [version])["Upload-Offset"] == "2000")
    #expect(try server.ask("PATCH", upload, patch(at: 2000, isLast: false), body: Array(bytes[2000...])).status == 204)
    #expect(try end(older).status == 409)
    #expect(try server.ask("PATCH", upload, patch(at: 5000, isLast: true), body: []).status == 400)
    #expect(server.folder.read("x") == nil)
  }

  @Test func aTusAppendIsAnswered409AfterATakeover() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 5000)
    let older = try server.client()
    let head = [tus, ("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", "0"), chunked]
    try older.head("PATCH", upload, head)
    try sendChunk(older, bytes[..<2000])
    #expect(try eventually { server.folder.sizeOfKept == 2000 })
    #expect(try server.offset(upload) == 2000)
    #expect(try end(older).status == 409)
    #expect(try server.patch(upload, at: 2000, Array(bytes[2000...])).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  /// A starting server publishes uploads that were complete when the last one was killed. If a client is already
  /// writing to such an upload, its request publishes the upload when it ends.
  @Test func anUploadThatIsStillWrittenIsLeftAloneWhenTheServerStarts() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 5000)
    let client = try server.client()
    let head = [tus, ("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", "0"), chunked]
    try client.head("PATCH", upload, head)
    try sendChunk(client, bytes)
    #expect(try eventually { server.folder.sizeOfKept == 5000 })
    server.server.service.uploads.publishComplete()
    let id = try #require(UploadID(upload.suffix(UploadID.length)))
    guard case .unfinished(let kept) = try server.server.service.uploads.find(id) else {
      Issue.record("it is published")
      return
    }
    #expect(kept.isOpen)
    #expect(try end(client).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  /// Nothing can be added to the upload, and it contains the bytes of the older request.
  @Test func anUploadThatIsPublishedMeanwhileIsDoneForBoth() throws {
    let server = try TestServer()
    let upload = try server.create("x", length: 5000)
    let older = try server.client()
    let head = [tus, ("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", "0"), chunked]
    try older.head("PATCH", upload, head)
    try sendChunk(older, bytes)
    #expect(try eventually { server.folder.sizeOfKept == 5000 })
    #expect(try server.offset(upload) == 5000)
    #expect(server.folder.read("x") == bytes)
    #expect(try end(older).status == 204)
  }

  /// The last bytes of an older request may arrive while the question is answered: a client that is told of all bytes
  /// takes the file for stored.
  @Test func anUploadWithAllItsBytesIsPublishedBeforeItIsSaidToBe() throws {
    let server = try TestServer()
    var told = 0
    for round in 0..<400 {
      let (older, asking) = (try server.client(), try server.client())
      let upload = try server.create("\(round)", length: 100)
      try older.head(
        "PATCH", upload,
        [
          ("Tus-Resumable", "1.0.0"), ("Upload-Offset", "0"), ("Content-Type", Tus.contentType),
          ("Content-Length", "100"),
        ])
      let question = Array("HEAD \(upload) HTTP/1.1\r\nHost: localhost\r\nTus-Resumable: 1.0.0\r\n\r\n".utf8)
      try asking.send(question)
      try older.send(bytes[..<100].map { $0 })
      let state = try asking.answer(hasBody: false)
      if state["Upload-Offset"] == "100" {
        told += 1
        #expect(server.folder.read(BytePath("\(round)")) != nil, "round \(round)")
      }
      _ = try older.answer()
    }
    #expect(told > 0)
  }
}
