import BlobCrypto
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

/// Tests `Content-Digest` for PUT and for resumable uploads. RFC 9530.
struct ContentDigestTests {
  private func discover(
    _ headers: HTTPHeaders, named: String?, _ checksum: Digest.Algorithm
  ) async throws(UploadError) -> UploadDestination {
    try await UploadDestination.discover(
      host, named: named, checksum: checksum, over: Script(.status(204, headers)))
  }

  @Test(arguments: ["put", "resumable", nil]) func contentDigestsAreSentOnlyIfTheServerAsksForThem(
    _ uploadProtocol: String?
  ) async throws {
    let limit: HTTPHeaders = ["Upload-Limit": "min-size=0"]
    var asking = limit
    asking["Want-Content-Digest"] = "sha-256=10, sha-512=0"
    #expect(
      try await discover(asking, named: uploadProtocol, .sha256).uploadProtocol.name == uploadProtocol ?? "resumable")
    for (headers, checksum) in [(limit, Digest.Algorithm.sha256), (asking, .sha512), (asking, .sha1)] {
      let error = await #expect(throws: UploadError.self) {
        try await discover(headers, named: uploadProtocol, checksum)
      }
      #expect(error?.side == .destination && error?.recovery == .giveUp)
      #expect(error?.message.contains("--verify") == true, "\(error as Any)")
    }
  }

  /// A gateway may answer for the server, which says nothing about digests.
  @Test(arguments: ["put", "resumable", nil], [429, 500, 502, 503, 504])
  func aServerThatIsAbsentForAMomentIsAskedAgain(_ uploadProtocol: String?, _ status: Int) async throws {
    let script = Script { number, _ throws(TransportError) in
      number == 0
        ? .status(status, ["Retry-After": "0"])
        : .status(204, ["Upload-Limit": "min-size=0", "Want-Content-Digest": "sha-256=10"])
    }
    _ = try await UploadDestination.discover(host, named: uploadProtocol, checksum: .sha256, over: script)
    #expect(script.methods == ["OPTIONS", "OPTIONS"])
  }

  @Test func aPutCarriesItsDigest() async throws {
    let source = PatternSource(length: 2500)
    let transport = Script { _, _ throws(TransportError) in .status(201) }
    _ = try await uploader(PlainPut(checksum: .sha512), transport).upload(source, as: "a")
    let digest = Digest.value(of: source.bytes(at: 0, count: 2500), .sha512)
    #expect(transport.requests[0].headers["Content-Digest"] == DigestField.text([.sha512: digest]))
    let plain = Script { _, _ throws(TransportError) in .status(201) }
    _ = try await uploader(PlainPut(), plain).upload(source, as: "a")
    #expect(plain.requests[0].headers["Content-Digest"] == nil)
  }

  @Test func aMismatchIsSentAgainButNotForEver() async throws {
    let mismatch = HTTPResponse(
      head: HTTPHead(status: 400, headers: ["Content-Type": "application/problem+json"]),
      body: Array(#"{"type":"https://iana.org/assignments/http-problem-types#digest-mismatching-values"}"#.utf8))
    let once = Script { number, _ throws(TransportError) in number == 0 ? mismatch : .status(201) }
    #expect(await uploader(PlainPut(checksum: .sha256), once).failure() == nil)
    #expect(once.methods == ["PUT", "PUT"])
    let always = Script { _, _ throws(TransportError) in mismatch }
    let error = await uploader(PlainPut(checksum: .sha256), always, retries: 3).failure()
    #expect(error?.message.contains("the bytes changed on the way") == true, "\(error as Any)")
    #expect(always.methods.count == 4)
    let other = Script { _, _ throws(TransportError) in .status(400, text: "no") }
    _ = await uploader(PlainPut(checksum: .sha256), other, retries: 3).failure()
    #expect(other.methods.count == 1)
  }
}
