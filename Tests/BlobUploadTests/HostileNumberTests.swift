import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Arbitrary numbers and dates in responses must neither end the process nor be believed.
@Suite struct HostileNumberTests {
  static let numbers = [
    "0", "1", "-1", "+5", "", " 7", "0x10", "1e9", "٣", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "4611686018427387904", "18446744073709551616", "99999999999999999999999999",
  ]
  private let signer = S3Signer(
    S3Credentials(accessKey: "k", secretKey: "s"), region: "us-east-1", clock: { 1_795_302_000 })
  private var s3: S3Multipart { S3Multipart(bucketPath: "/in/", signer: signer) }

  private func context(_ transport: any Transport) -> UploadContext {
    UploadContext(transport: transport, endpoint: host, traits: s3.traits)
  }

  private func session(_ state: [String: String]) -> UploadSession {
    UploadSession(state: ["url": host.text + "a", "id": "1"].merging(state) { $1 })
  }

  @Test(arguments: numbers, numbers) func aListOfPartsMayHaveAnyNumber(_ number: String, _ size: String) async throws {
    let part = "<Part><PartNumber>\(number)</PartNumber><Size>\(size)</Size><ETag>\"1\"</ETag></Part>"
    let list = HTTPResponse.status(200, text: "<ListPartsResult>\(part)\(part)</ListPartsResult>")
    let session = session(["part-size": "8388608", "length": "9223372036854775807"])
    guard case .parts(let parts, _) = try await s3.held(by: session, context(Script(list))) else {
      throw CheckFailure("no parts are listed")
    }
    #expect(parts.allSatisfy { 1...10_000 ~= $0.number && $0.held >= 0 && $0.start >= 0 })
  }

  /// The sum of these sizes overflows.
  @Test func sizesOfPartsMayAddUpPastAnyNumber() async throws {
    let upload =
      "<Upload><Key>a</Key><UploadId>1</UploadId><Initiated>999999999-11-21T23:00:00.000Z</Initiated></Upload>"
    let parts = (1...4).map {
      "<Part><PartNumber>\($0)</PartNumber><Size>4611686018427387904</Size><ETag>1</ETag></Part>"
    }
    let script = Script { _, request throws(TransportError) in
      .status(
        200,
        text: request.url.query!.contains("uploads=")
          ? "<ListMultipartUploadsResult>\(upload)</ListMultipartUploadsResult>"
          : "<ListPartsResult>\(parts.joined())</ListPartsResult>")
    }
    let orphans = try await s3.allOrphans([], at: host, context(script))
    #expect(orphans.map(\.bytes) == [.max] && orphans.map(\.begun) == [nil])
  }

  @Test(arguments: [
    "Fri, 31 Dec 2147483647 23:59:59 GMT", "Fri, 31 Dec 999999999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 292277026596 23:59:59 GMT",
  ])
  func aClockMayBeSetToAnyDate(_ date: String) async throws {
    let late = HTTPResponse.status(
      403, ["Date": date], text: "<Error><Code>RequestTimeTooSkewed</Code></Error>")
    let target = UploadTarget(endpoint: host, url: host, path: "a", length: 1)
    let script = Script(late)
    await #expect(throws: UploadError.self) { try await s3.discover(target, context(script)) }
    #expect(script.requests.allSatisfy { $0.headers["x-amz-date"]!.utf8.count == 16 })
  }

  @Test(arguments: numbers) func aWaitMayHaveAnyLength(_ seconds: String) async throws {
    let clock = LeapingClock()
    let script = Script(.status(503, ["Retry-After": seconds]), .status(201))
    let uploader = uploader(PlainPut(), script, clock: clock)
    #expect(await uploader.failure(of: 10) == nil)
    #expect(clock.waits.count == 1 && .zero...(.seconds(30)) ~= clock.waits[0], "\(clock.waits)")
    if seconds == "+5" { #expect(clock.waits[0] < .seconds(1)) }
  }

  /// A date counts by the server's clock, which may differ from ours by years.
  @Test(arguments: [
    "Sun, 06 Nov 1994 08:49:47 GMT", "Sunday, 06-Nov-94 08:49:47 GMT", "Sun Nov  6 08:49:47 1994",
  ]) func aServersRetryAfterMayBeADate(_ date: String) async {
    let clock = LeapingClock()
    let full: HTTPHeaders = ["Retry-After": date, "Date": "Sun, 06 Nov 1994 08:49:37 GMT"]
    let past: HTTPHeaders = ["Retry-After": date]
    let script = Script(.status(503, full), .status(503, past), .status(201))
    #expect(await uploader(PlainPut(), script, clock: clock).failure() == nil)
    #expect(clock.waits == [.seconds(10), .zero])
  }

  @Test(arguments: numbers, ["tus", "resumable"])
  func anOffsetOrALengthMayBeAnyNumber(_ number: String, _ name: String) async throws {
    let uploadProtocol: any UploadProtocol = name == "tus" ? Tus() : IETFResumable()
    let script = Script { _, request throws(TransportError) in
      .status(
        request.method == "POST" ? 201 : 204,
        [
          "Location": "/in/1", "Upload-Offset": number, "Upload-Length": number, "Upload-Complete": "?0",
          "Upload-Limit": "max-size=\(number), max-append-size=\(number), min-append-size=\(number), max-age=\(number)",
          "Upload-Expires": "Fri, 31 Dec 2147483647 23:59:59 GMT", "Upload-Draft-Interop-Version": "8",
        ])
    }
    for length in [0, 1, 1000, nil] as [Int64?] {
      let source = PatternSource(length: 1000)
      let info = BlobInfo(length: length)
      let uploader = uploader(uploadProtocol, script, retries: 1)
      _ = try? await uploader.upload(
        source, info, to: uploader.destination.target("a", length: length))
    }
  }

  @Test func aPartPlanIsValidForAllLimitsOfAServer() {
    for limit in [.min, -1, 0, 1, 1 << 20, .max - 1, .max] as [Int64] {
      for length in [nil, 0, 1, .max - 1, .max] as [Int64?] {
        for count in [nil, 0, -1, 1, 10_000, .max] as [Int?] {
          let limits = PartLimits(smallest: limit, largest: limit, count: count, total: limit)
          for wanted in [nil, 1, Int64.max] {
            let plan = PartPlan(length: length, wanted: wanted, limits: limits)
            #expect(plan.partSize ?? 1 > 0)
            for offset in [0, 1, .max] as [Int64] {
              #expect(plan.part(from: offset, number: 1).map { $0.length ?? 0 >= 0 } ?? true)
            }
          }
        }
      }
    }
  }

  /// The number of parts would not fit into memory.
  @Test func aPlanOfTooManyPartsIsNone() {
    #expect(PartPlan(length: .max, partSize: 1).numbered() == nil)
    #expect(PartPlan(length: .max, partSize: .max - 1).numbered()?.count == 2)
  }

  @Test func aFileOfAnyLengthCanBeCutForConcatenation() {
    for length in [.max, .max - 1, 1 << 62] as [Int64] { #expect(ParallelRun.size(of: length) >= length / 64) }
  }
}
