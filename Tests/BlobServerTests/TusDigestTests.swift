import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import TestSupport
import Testing

/// The digest fields of RFC 9530 have the same effect in tus requests as in resumable uploads of the IETF draft.
struct TusDigestTests {
  private static let octets = ("Content-Type", "application/offset+octet-stream")

  private func field(_ name: String, _ bytes: [UInt8]) -> (String, String) {
    (name, DigestField.text([.sha256: Digest.value(of: bytes, .sha256)]))
  }

  private func create(
    _ server: TestServer, length: Int, _ more: [(String, String)], body: [UInt8] = []
  ) throws -> RawHTTPClient.Answer {
    let head = [tus, ("Upload-Length", "\(length)"), ("Upload-Metadata", "filename \(base64("x"))")]
    return try server.ask("POST", "/", head + (body.isEmpty ? [] : [Self.octets]) + more, body: body)
  }

  @Test func aPatchWithAnotherDigestMovesNothing() throws {
    let server = try TestServer()
    let bytes = pattern(200_000)
    let upload = try server.create("x", length: bytes.count)
    #expect(try server.patch(upload, at: 0, Array(bytes[..<1000])).status == 204)
    let rest = Array(bytes[1000...])
    let answer = try server.patch(upload, at: 1000, rest, [field("Content-Digest", [1])])
    #expect(answer.status == 400)
    #expect(answer.text.contains("#digest-mismatching-values"))
    #expect(try server.offset(upload) == 1000)
    #expect(server.folder.sizeOfKept == 1000)
    #expect(try server.patch(upload, at: 1000, rest, [("Content-Digest", "sha-256=:AAAA:")]).status == 400)
    #expect(try server.patch(upload, at: 1000, rest, [field("Content-Digest", rest)]).status == 204)
    #expect(server.folder.read("x") == bytes)
  }

  @Test(arguments: ["Content-Digest", "Repr-Digest"], [1000, 5 << 20])
  func aCreationWithAnotherDigestCreatesNothing(_ name: String, _ length: Int) throws {
    let server = try TestServer()
    let bytes = pattern(length)
    let wrong = try create(server, length: length, [field(name, [1])], body: bytes)
    #expect(wrong.status == 400)
    #expect(wrong.text.contains("#digest-mismatching-values"))
    #expect(try eventually { server.folder.kept.isEmpty })
    #expect(server.folder.read("x") == nil)
    #expect(try create(server, length: length, [field(name, bytes)], body: bytes).status == 201)
    #expect(server.folder.read("x") == bytes)
  }

  /// The digest of the whole is sent with the creation, without content or with the first bytes, or with the last
  /// append.
  @Test(arguments: [0, 1000, nil], [true, false])
  func thePromisedWholeIsChecked(_ sentFirst: Int?, _ isRight: Bool) throws {
    let server = try TestServer()
    let bytes = pattern(300_000)
    let promise = field("Repr-Digest", isRight ? bytes : [1])
    let first = Array(bytes[..<(sentFirst ?? 0)])
    let created = try create(server, length: bytes.count, sentFirst == nil ? [] : [promise], body: first)
    let upload = try #require(created["Location"])
    let rest = Array(bytes[first.count...])
    let answer = try server.patch(upload, at: first.count, rest, sentFirst == nil ? [promise] : [])
    #expect(answer.status == (isRight ? 204 : 400))
    #expect(server.folder.read("x") == (isRight ? bytes : nil))
    if isRight { return #expect(try server.offset(upload) == bytes.count) }
    #expect(answer.text.contains("#digest-mismatching-values"))
    #expect(server.folder.kept.isEmpty)
    #expect(try server.ask("HEAD", upload, [tus]).status == 410)
  }

  @Test(arguments: [true, false]) func thePromiseOfAFinalUploadIsChecked(_ isRight: Bool) throws {
    let server = try TestServer()
    var parts: [String] = []
    for byte in [UInt8(1), 2] {
      let head = [tus, Self.octets, ("Upload-Length", "1"), ("Upload-Concat", "partial")]
      parts.append(try #require(try server.ask("POST", "/", head, body: [byte])["Location"]))
    }
    let final = [
      tus, ("Upload-Concat", "final;" + parts.joined(separator: " ")), ("Upload-Metadata", "filename \(base64("x"))"),
      field("Repr-Digest", isRight ? [1, 2] : [2, 1]),
    ]
    #expect(try server.ask("POST", "/", final, body: []).status == (isRight ? 201 : 400))
    #expect(server.folder.read("x") == (isRight ? [1, 2] : nil))
  }
}
