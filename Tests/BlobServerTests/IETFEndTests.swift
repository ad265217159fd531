import BlobCrypto
import BlobHTTP
import Blobs
import TestSupport
import Testing

@testable import BlobServer

/// An upload of resumable uploads for HTTP ends when its client says so, by `Upload-Complete: ?1`. That all of its bytes
/// are there says nothing about a digest that the client may send with the end.
struct IETFEndTests {
  private let bytes = pattern(5)

  enum Event: CaseIterable { case none, question, restart }

  @Test(arguments: Event.allCases, [true, false]) func bytesAloneDoNotEndAnUpload(_ event: Event, isRight: Bool) throws
  {
    let folder = try TestFolder()
    var server = try TestServer(over: folder)
    let upload = try create(server, bytes)
    switch event {
    case .none: break
    case .question: try expectOpen(server, upload)
    case .restart:
      server.server.stop(grace: .zero)
      server = try TestServer(over: folder)
      server.server.service.uploads.publishComplete()
      try expectOpen(server, upload)
    }
    #expect(folder.read("x") == nil)
    let end = try append(server, upload, at: 5, digest(isRight ? bytes : [1]))
    #expect(end.status == (isRight ? 201 : 400), "\(end.text)")
    #expect(folder.read("x") == (isRight ? bytes : nil))
  }

  /// The server may be killed at any time after the last byte.
  @Test func theEndIsSavedBeforeTheLastByte() throws {
    let server = try TestServer()
    let upload = try create(server, [], length: 5)
    #expect(try record(server, upload).awaitsEnd)
    let client = try begin(server, upload, at: 0, [])
    try client.send(Array("5\r\n".utf8) + bytes + [13, 10])
    #expect(try eventually { server.folder.sizeOfKept == 5 })
    #expect(try !record(server, upload).awaitsEnd)
    #expect(server.folder.read("x") == nil)
    try client.send(Array("0\r\n\r\n".utf8))
    #expect(try client.answer().status == 201)
  }

  @Test func aNewerRequestTakesTheEndBack() throws {
    let server = try TestServer()
    let upload = try create(server, [], length: 5)
    do {
      let client = try begin(server, upload, at: 0, [])
      try client.send(Array("3\r\n".utf8) + bytes[..<3] + [13, 10])
      #expect(try eventually { server.folder.sizeOfKept == 3 })
    }
    let more = try append(server, upload, at: 3, body: Array(bytes[3...]), isLast: false)
    #expect(more.status == 204 && more["Upload-Complete"] == "?0")
    try expectOpen(server, upload)
    #expect(try append(server, upload, at: 5).status == 201)
    #expect(server.folder.read("x") == bytes)
  }

  /// Its connection breaks before the digest that it announces.
  @Test func anEndThatAnnouncesADigestIsSaidOnlyWithIt() throws {
    let server = try TestServer()
    let upload = try create(server, bytes)
    do {
      let client = try begin(server, upload, at: 5, [("Trailer", "Repr-Digest")])
      #expect(try eventually { try isWriting(server, upload) })
      withExtendedLifetime(client) {}
    }
    #expect(try eventually { try !isWriting(server, upload) })
    try expectOpen(server, upload)
    #expect(server.folder.read("x") == nil)
  }

  @Test func aCreationThatAnnouncesADigestIsNotEndedByItsLength() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.head(
      "POST", "/x", said(true) + [("Upload-Length", "0"), ("Transfer-Encoding", "chunked"), ("Trailer", "Repr-Digest")])
    let upload = try #require(try client.readHead()["Location"])
    try expectOpen(server, upload, offset: 0)
    #expect(server.folder.read("x") == nil)
  }

  /// The record knows the digest that was verified; for another one the file is read.
  @Test(arguments: [Digest.Algorithm.sha256, .sha512]) func aDigestAfterTheEndIsCompared(
    _ algorithm: Digest.Algorithm
  ) throws {
    let server = try TestServer()
    let upload = try create(server, bytes)
    #expect(try append(server, upload, at: 5, digest(bytes)).status == 201)
    let wrong = try append(server, upload, at: 5, digest([1], algorithm))
    #expect(wrong.status == 400 && wrong["Upload-Complete"] == "?1")
    #expect(wrong.text.contains("Repr-Digest"))
    #expect(try append(server, upload, at: 5, digest(bytes, algorithm)).status == 204)
    #expect(try append(server, upload, at: 5, [digest("Content-Digest", bytes)]).status == 400, "the body is empty")

    let other = try server.create("y", length: 5)
    #expect(try server.patch(other, at: 0, bytes, digest(bytes)).status == 204)
    #expect(try server.patch(other, at: 5, [], digest([1], algorithm)).status == 400)
    #expect(try server.patch(other, at: 5, [], digest(bytes, algorithm)).status == 204)
    #expect(server.folder.read("x") == bytes && server.folder.read("y") == bytes)
  }

  @Test func severalDigestsAfterTheEndAreAllCompared() throws {
    let server = try TestServer()
    let upload = try create(server, bytes)
    #expect(try append(server, upload, at: 5).status == 201)
    let right = [Digest.Algorithm.sha256: Digest.value(of: bytes, .sha256)]
    for (other, status) in [(bytes, 204), ([1], 400)] {
      let values = right.merging([.sha512: Digest.value(of: other, .sha512)]) { $1 }
      #expect(try append(server, upload, at: 5, [("Repr-Digest", DigestField.text(values))]).status == status)
    }
  }

  /// As while the server starts: the upload is about to be published when a request for it comes.
  @Test(arguments: [true, false], [true, false]) func anAppendWaitsForThePublication(isTus: Bool, isRight: Bool) throws
  {
    let server = try TestServer()
    let path = isTus ? try server.create("x", length: 5) : try create(server, bytes)
    let service = server.server.service
    let upload = try #require(try live(server, path))
    let writer = try upload.write(from: isTus ? 0 : 5, bringing: nil, by: nil, isLast: isTus ? nil : true)
    if isTus { try bytes.withUnsafeBytes { (bytes) in try writer.append(.bytes(bytes)) } }
    try writer.end(isLast: !isTus)
    let isHeld = Monitor(true)
    for _ in 0..<8 { service.workers.submit { isHeld.wait { $0 ? nil : () } } }
    upload.publish { _ in }
    let client = try server.client()
    let head =
      isTus
      ? [tus, ("Content-Type", "application/offset+octet-stream"), ("Upload-Offset", "5")] : said(true) + at(5)
    try client.head("PATCH", path, head + [("Content-Length", "0")] + (isRight ? [] : digest([1])))
    #expect(try eventually { service.counters.requests.load(ordering: .relaxed) == 1 })
    if !isTus, isRight { #expect(try eventually { !writer.isNewest }) }
    isHeld.update { $0 = false }
    #expect(try client.answer().status == (isRight ? 204 : 400))
    #expect(server.folder.read("x") == bytes)
  }

  /// For a client of tus it would be finished.
  @Test func anUploadThatAwaitsItsEndIsNotOneOfTus() throws {
    let server = try TestServer()
    let upload = try create(server, bytes)
    #expect(try server.ask("HEAD", upload, [tus]).status == 404)
    #expect(try server.patch(upload, at: 5, []).status == 404)
    #expect(try append(server, upload, at: 5).status == 201)
  }

  /// Earlier servers saved no statement about the end, and the length was enough for them.
  @Test func aRecordOfAnEarlierServerIsEndedByItsLength() throws {
    let folder = try TestFolder()
    folder.makeFolder(".fullbore")
    let id = "0123456789abcdef0123456789abcdef"
    folder.write(
      BytePath(".fullbore/\(id).info"), Array("fullbore upload 1\ntarget x\nexisting keep\nlength 5\nmetadata \n".utf8))
    folder.write(BytePath(".fullbore/\(id).data"), bytes)
    let server = try TestServer(over: folder)
    #expect(try eventually { folder.read("x") == bytes })
    #expect(try server.ask("HEAD", "/.fullbore-upload/\(id)", [version])["Upload-Complete"] == "?1")
  }

  // MARK: Requests

  private let version = ("Upload-Draft-Interop-Version", "8")

  private func said(_ isLast: Bool) -> [(String, String)] { [version, ("Upload-Complete", isLast ? "?1" : "?0")] }

  private func at(_ offset: Int) -> [(String, String)] {
    [("Upload-Offset", "\(offset)"), ("Content-Type", "application/partial-upload")]
  }

  private func digest(_ name: String, _ bytes: [UInt8], _ algorithm: Digest.Algorithm = .sha256) -> (String, String) {
    (name, DigestField.text([algorithm: Digest.value(of: bytes, algorithm)]))
  }

  private func digest(_ bytes: [UInt8], _ algorithm: Digest.Algorithm = .sha256) -> [(String, String)] {
    [digest("Repr-Digest", bytes, algorithm)]
  }

  private func create(_ server: TestServer, _ bytes: [UInt8], length: Int? = nil) throws -> String {
    let head = said(false) + [("Upload-Length", "\(length ?? bytes.count)"), ("Content-Length", "\(bytes.count)")]
    let client = try server.client()
    try client.head("POST", "/x", head)
    let upload = try #require(try client.readHead()["Location"])
    try client.send(bytes)
    #expect(try client.answer().status == 201)
    return upload
  }

  private func append(
    _ server: TestServer, _ upload: String, at offset: Int, _ more: [(String, String)] = [], body: [UInt8] = [],
    isLast: Bool = true
  ) throws -> RawHTTPClient.Answer {
    try server.ask("PATCH", upload, said(isLast) + at(offset) + more, body: body)
  }

  /// A PATCH with the end, in chunks that are still to come.
  private func begin(
    _ server: TestServer, _ upload: String, at offset: Int, _ more: [(String, String)]
  ) throws -> RawHTTPClient {
    let client = try server.client()
    try client.head("PATCH", upload, said(true) + at(offset) + [("Transfer-Encoding", "chunked")] + more)
    return client
  }

  private func expectOpen(_ server: TestServer, _ upload: String, offset: Int = 5) throws {
    let state = try server.ask("HEAD", upload, [version])
    #expect(state.status == 204)
    #expect(state["Upload-Complete"] == "?0" && state["Upload-Offset"] == "\(offset)")
  }

  private func id(_ upload: String) throws -> UploadID { try #require(UploadID(upload.suffix(UploadID.length))) }

  private func record(_ server: TestServer, _ upload: String) throws -> UploadRecord {
    try #require(try server.server.service.store.load(id(upload))).record
  }

  private func live(_ server: TestServer, _ upload: String) throws -> Upload? {
    guard case .unfinished(let live) = try server.server.service.uploads.find(id(upload)) else { return nil }
    return live
  }

  private func isWriting(_ server: TestServer, _ upload: String) throws -> Bool {
    try live(server, upload)?.isWriting == true
  }
}
