import BlobCrypto
import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Tests small S3 objects, each of which needs one request.
@Suite struct SmallObjectTests {
  private static let field = "x-amz-checksum-crc32c"
  private let names = (0..<300).map { "\($0)" }
  private let uploadProtocol = S3Multipart(
    bucketPath: "/media/",
    signer: S3Signer(S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s"), region: "us-east-1"))

  private func queue(_ desk: Desk, _ transport: any Transport, _ scheme: String = "http") -> UploadQueue {
    // `S3ConditionTests` tests how conditions are tried.
    uploadProtocol.conditions.noteHeeded()
    var queue = desk.queue(transport, uploadProtocol)
    queue.uploader.destination = UploadDestination(
      endpoint: HTTPURL("\(scheme)://media.example/media/")!, uploadProtocol: uploadProtocol,
      limits: uploadProtocol.limits)
    queue.uploader.clock = LeapingClock()
    return queue
  }

  /// The response of a server that verifies checksums, with the checksum of the request.
  private static func echo(_ request: HTTPRequest) -> HTTPResponse {
    var headers: HTTPHeaders = ["ETag": "\"1\""]
    headers[field] = request.headers[field]
    return .status(200, headers)
  }

  @Test func eachIsSignedWithWhatItsBytesAre() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in Self.echo(request) }
    let queue = queue(desk, script)
    #expect(try await desk.run(queue, names).sent == 300)
    #expect(queue.totals.sent == 300_000 && queue.totals.acknowledged == 300_000)
    let bytes = PatternSource(length: 1000).bytes(count: 1000)
    for request in script.requests {
      #expect(request.method == "PUT" && request.headers["If-None-Match"] == "*")
      #expect(request.headers["x-amz-content-sha256"] == Digest.hex(of: bytes, .sha256))
      #expect(request.headers[Self.field] == base64(Digest.value(of: bytes, .crc32c)))
      var again = request
      again.headers["Authorization"] = nil
      uploadProtocol.signer.sign(&again)
      // The signature is the same unless a second has passed meanwhile.
      if again.headers["x-amz-date"] == request.headers["x-amz-date"] {
        #expect(again.headers["Authorization"] == request.headers["Authorization"])
      }
    }
    let sum = try await desk.journal.summary()
    #expect(sum.map(\.state) == [.done] && sum.map(\.count) == [300])
  }

  /// The first request finds out whether the server verifies checksums.
  @Test(arguments: [false, true]) func overTLSAChecksumIsForThoseWhoLookAtIt(_ heeds: Bool) async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in
      heeds ? Self.echo(request) : .status(200, ["ETag": "\"1\""])
    }
    var queue = queue(desk, script, "https")
    queue.jobs = 1
    #expect(try await desk.run(queue, names).sent == 300)
    #expect(script.requests.allSatisfy { $0.headers["x-amz-content-sha256"] == S3Signature.unsignedPayload })
    #expect(script.requests.dropFirst().allSatisfy { ($0.headers[Self.field] != nil) == heeds })
  }

  @Test func aRefusalIsOneObjectsOwn() async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in number == 7 ? .status(403) : Self.echo(request) }
    let queue = queue(desk, script)
    #expect(try await desk.run(queue, names).sent == 299)
    #expect(script.requests.count == 300)
    #expect(queue.totals.sent == 300_000 && queue.totals.acknowledged == 299_000)
  }

  @Test func otherBytesAreFoundOut() async throws {
    let desk = try await Desk()
    let script = Script { number, request throws(TransportError) in
      number == 7 ? .status(200, ["ETag": "\"1\"", Self.field: "AAAAAA=="]) : Self.echo(request)
    }
    #expect(try await desk.run(queue(desk, script), names).sent == 300)
    #expect(script.methods.count { $0 == "PUT" } == 301)
  }

  @Test func anObjectThatIsReadAheadAndOneWithoutAName() async throws {
    let desk = try await Desk()
    let script = Script { _, request throws(TransportError) in Self.echo(request) }
    let outcomes = try await desk.run(queue(desk, script), ["a", "b", "c/../d"], lengths: [256 << 10, 257 << 10, 1])
    #expect(outcomes.sent == 2 && outcomes.error("c/../d")?.message.contains("S3") == true)
  }
}
