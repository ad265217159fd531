import BlobCrypto
import BlobHTTP
import BlobServer
import Blobs
import TestSupport
import Testing

// Digests of the whole, and those that follow the bytes.
extension DigestFieldTests {
  @Test func aDigestOfTheWholeBehindAnAppendMustBeAnnounced() throws {
    let server = try TestServer()
    for (upload, head) in try appends(server) {
      let answer = try sendChunk(server, "PATCH", upload, head, [field("Repr-Digest", pattern(4))])
      #expect(answer.status == 400)
      #expect(answer.text.contains("must be announced by Trailer"), "\(answer.text)")
    }
    for (upload, head) in try appends(server) {
      let announced = head + [("Trailer", "Repr-Digest")]
      #expect(try sendChunk(server, "PATCH", upload, announced, [field("Repr-Digest", pattern(4))]).status < 300)
    }
    #expect(server.folder.read("x") == pattern(4) && server.folder.read("y") == pattern(4))
  }

  /// The trailer was announced, but has no digest that the server supports.
  @Test func bytesWhoseDigestIsOfAnotherAlgorithmCount() throws {
    let server = try TestServer()
    let head = [("Trailer", "Content-Digest")]
    for (upload, more) in try appends(server) {
      #expect(try sendChunk(server, "PATCH", upload, more + head, [("Content-Digest", "md5=:YWJj:")]).status < 300)
    }
    #expect(server.folder.read("x") == pattern(4) && server.folder.read("y") == pattern(4))

    let begun = try server.ask("PUT", "/z", ietf(false))
    let upload = try #require(begun["Location"])
    let notLast = ietf(false) + append + [("Upload-Offset", "0")] + head
    let answer = try sendChunk(server, "PATCH", upload, notLast, [("Content-Digest", "md5=:YWJj:")])
    #expect(answer.status == 204 && answer["Upload-Offset"] == "4")
  }

  /// The request that was to complete the upload is rejected, so the upload is not complete.
  @Test func anEmptyEndWithAnotherDigestEndsNothing() throws {
    let server = try TestServer()
    let begun = try server.ask("PUT", "/x", ietf(false), body: pattern(4))
    let upload = try #require(begun["Location"])
    let end = ietf(true) + append + [("Upload-Offset", "4")]
    let answer = try server.ask("PATCH", upload, end + [field("Content-Digest", [1])])
    #expect(answer.status == 400 && answer["Upload-Complete"] == "?0" && answer["Upload-Offset"] == "4")
    #expect(try server.ask("HEAD", upload, [])["Upload-Complete"] == "?0")
    #expect(server.folder.read("x") == nil)
    #expect(try server.ask("PATCH", upload, end + [field("Content-Digest", [])]).status < 300)
    #expect(server.folder.read("x") == pattern(4))
  }

  /// If the head has a digest, the server computes it, so a digest in the trailer need not be announced; both must be
  /// right.
  @Test(arguments: ["Content-Digest", "Repr-Digest"], [true, false])
  func aDigestMayBeRepeatedBehindTheBytes(_ name: String, _ isAnnounced: Bool) throws {
    let (right, wrong) = (field(name, pattern(4)), field(name, [1]))
    for (first, last, isRight) in [(right, right, true), (right, wrong, false), (wrong, right, false)] {
      let server = try TestServer()
      let head = [first] + (isAnnounced ? [("Trailer", name)] : [])
      let answer = try sendChunk(server, "PUT", "/p", head, [last])
      #expect(answer.status == (isRight ? 201 : 400))
      #expect(answer.text.contains("#digest-mismatching-values") == !isRight, "\(answer.text)")
      #expect((server.folder.read("p") != nil) == isRight)
      for (upload, more) in try appends(server) {
        #expect(try (sendChunk(server, "PATCH", upload, more + head, [last]).status < 300) == isRight)
      }
      #expect((server.folder.read("x") != nil) == isRight && (server.folder.read("y") != nil) == isRight)
    }
  }
}
