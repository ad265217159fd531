import BlobCrypto
import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Foundation
import Testing

struct TusChecksumTests {
  private static func offer(_ algorithms: String?) -> HTTPResponse {
    var headers: HTTPHeaders = ["Tus-Version": "1.0.0", "Tus-Extension": "creation,creation-with-upload,checksum"]
    headers["Tus-Checksum-Algorithm"] = algorithms
    return .status(204, headers)
  }

  private func discover(
    _ answer: HTTPResponse, named: String? = nil, _ checksum: Digest.Algorithm = .crc32c
  ) async throws(UploadError) -> UploadDestination {
    try await UploadDestination.discover(host, named: named, checksum: checksum, over: Script(answer))
  }

  @Test(arguments: ["tus", nil]) func theErrorNamesTheChecksumsThatTheServerOffers(_ uploadProtocol: String?)
    async throws
  {
    for offered in ["sha1,md5", nil] {
      let error = await #expect(throws: UploadError.self) {
        try await discover(Self.offer(offered), named: uploadProtocol)
      }
      #expect(error?.side == .destination && error?.recovery == .giveUp)
      #expect(error?.message.contains("crc32c was asked for, of md5, sha1") == true, "\(error as Any)")
      #expect(error?.message.contains("offers \(offered == nil ? "none" : "sha1, md5")") == true, "\(error as Any)")
    }
  }

  @Test func partsAreBounded() async throws {
    let destination = try await discover(Self.offer("sha1,crc32c"))
    #expect(destination.uploadProtocol.name == "tus" && destination.limits.usual == 8 << 20)
  }

  @Test func putCarriesNone() async throws {
    for (uploadProtocol, answer) in [("put", Self.offer("crc32c")), (nil, .status(405))] as [(String?, HTTPResponse)] {
      let error = await #expect(throws: UploadError.self) { try await discover(answer, named: uploadProtocol) }
      #expect(error?.side == .destination && error?.message.contains("--verify") == true)
    }
  }

  @Test func everyBodyCarriesItsDigest() async throws {
    let source = PatternSource(length: 2500)
    let transport = Script { number, request throws(TransportError) in
      number == 0 ? .created : .at([1000, 2000, 2500][number - 1])
    }
    let tus = Tus(wholeUpTo: 0, checksum: .sha1)
    _ = try await uploader(tus, transport, partSize: 1000).upload(source, as: "a")
    let sums = transport.requests.map { $0.headers["Upload-Checksum"] }
    #expect(sums.count == 4 && sums[0] == nil)
    for (sum, range) in zip(sums.dropFirst(), [0..<1000, 1000..<2000, 2000..<2500]) {
      let bytes = source.bytes(at: Int64(range.lowerBound), count: range.count)
      #expect(sum == "sha1 \(Data(Digest.value(of: bytes, .sha1)).base64EncodedString())")
    }
  }

  @Test func changedBytesAreSentAgainButNotForEver() async throws {
    let once = Script { number, request throws(TransportError) in
      switch number {
      case 0: .created
      case 1: .status(460)
      case 2: .at(0, of: 1000)
      default: .at(1000)
      }
    }
    #expect(await uploader(Tus(wholeUpTo: 0, checksum: .sha1), once).failure() == nil)
    #expect(once.methods == ["POST", "PATCH", "HEAD", "PATCH"])

    let always = Script { number, request throws(TransportError) in
      switch request.method {
      case "POST": .created
      case "HEAD": .at(0, of: 1000)
      default: .status(460, text: "no match")
      }
    }
    let error = await uploader(Tus(wholeUpTo: 0, checksum: .sha1), always, retries: 3).failure()
    #expect(error?.side == .file && error?.message.contains("460 (the bytes changed on the way)") == true)
    #expect(always.methods.count { $0 == "PATCH" } == 4)
  }

  @Test func theListOfOfferedChecksumsShowsNoSecret() async throws {
    let script = Script(
      .status(
        204,
        [
          "Tus-Version": "1.0.0", "Tus-Extension": "creation,checksum", "Tus-Checksum-Algorithm": "crc64,s3kr%54oken",
        ]))
    let context = UploadContext(
      transport: script, headers: ["Authorization": "Bearer s3krToken"], endpoint: host, traits: Tus().traits)
    let target = uploader(Tus(), script).destination.target("a", length: 1)
    let error = await #expect(throws: UploadError.self) { _ = try await Tus(checksum: .sha1).discover(target, context) }
    #expect(error?.message.hasSuffix("the server offers crc64") == true, "\(error as Any)")
  }

  /// The source is in the spool, so it can be read for its digest first.
  @Test func aSequentialSourceCarriesThemToo() async throws {
    let transport = Script { number, _ throws(TransportError) in number == 0 ? .created : .at(1000) }
    let source = PatternSource(length: 1000, access: .sequential)
    _ = try await uploader(Tus(wholeUpTo: 0, checksum: .sha1), transport).upload(source, as: "a")
    #expect(transport.requests.last?.headers["Upload-Checksum"]?.hasPrefix("sha1 ") == true)
  }
}
