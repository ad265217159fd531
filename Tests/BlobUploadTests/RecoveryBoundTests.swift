import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Every recovery has a limit while the server stores no further bytes.
@Suite struct RecoveryBoundTests {
  /// Ends a loop that would otherwise run forever.
  private static let mostRequests = 200
  private static func bounded(_ answer: @escaping Script.Answer) -> Script {
    Script { number, request throws(TransportError) in
      if number > mostRequests { throw TransportError(.badRequest, "a loop without an end") }
      return try answer(number, request)
    }
  }

  /// nginx with `client_max_body_size` in front of a server that reports no limits.
  @Test(arguments: [1000, 10_000_000] as [Int64])
  func aWholeThatIsTooLargeForAServerWithoutLimitsIsRefusedAtOnce(_ length: Int64) async {
    let script = Self.bounded { _, request throws(TransportError) in .status(request.method == "POST" ? 413 : 405) }
    let error = await uploader(IETFResumable(), script, limits: PartLimits(firstPart: .max)).failure(of: length)
    #expect(error?.status == 413 && error?.recovery == .giveUp && error?.side == .file, "\(error as Any)")
    #expect(script.methods == ["POST"])
  }

  /// The refusal shows that the server supports uploads in parts.
  @Test func aLimitThatCameWithTheRefusalIsKept() async {
    let script = Self.bounded { number, request throws(TransportError) in
      switch (request.method, request.headers["Upload-Complete"]) {
      case ("POST", "?1"): .status(413, ["Upload-Limit": "max-append-size=600"])
      case ("POST", _): .status(201, ["Location": "/up/1", "Upload-Complete": "?0"])
      case (_, "?1"): .status(204, ["Upload-Complete": "?1"])
      default: .status(204, ["Upload-Complete": "?0", "Upload-Offset": "600"])
      }
    }
    let error = await uploader(IETFResumable(), script, limits: PartLimits(firstPart: .max)).failure()
    #expect(error == nil, "\(error as Any)")
    #expect(script.methods == ["POST", "POST", "PATCH", "PATCH"])
  }

  /// The server reduces its limit by one byte each time.
  @Test func aLimitThatShrinksByAByteEachTimeIsNotFollowedForEver() async {
    let script = Self.bounded { number, request throws(TransportError) in
      if request.method == "POST" { return .status(201, ["Location": "/up/1", "Upload-Complete": "?0"]) }
      if request.method == "HEAD" { return .status(204, ["Upload-Complete": "?0", "Upload-Offset": "0"]) }
      return .status(413, ["Upload-Limit": "max-append-size=\(900_000 - number)"])
    }
    let error = await uploader(IETFResumable(), script).failure(of: 1_000_000)
    #expect(error?.status == 413, "\(error as Any)")
    #expect(script.methods.count < 50)
  }

  @Test func aBodyThatCannotBeMadeSmallerIsNotSentAgain() {
    var bounds = RecoveryBounds()
    let allowed = [1000, 999, 999].map { bounds.allowsSmallerBody(than: $0) }
    #expect(allowed == [true, true, false])
    bounds.noteProgress()
    let isAllowedLater = bounds.allowsSmallerBody(than: 5000)
    #expect(isAllowedLater, "the server has kept bytes meanwhile")
  }

  /// The server stores all the bytes, and cannot publish them: every new upload would fail too.
  @Test(arguments: ["tus", "resumable"], [200, 403, 404, 410, 500])
  func aRefusalOfAllTheBytesIsNoUploadThatIsGone(_ name: String, _ asked: Int) async {
    let script = Self.bounded { _, request throws(TransportError) in
      switch request.method {
      case "POST" where request.headers["X-HTTP-Method-Override"] == nil: .emptyCreation(name)
      case "HEAD" where asked == 200: .status(200, ["Upload-Offset": "0", "Upload-Complete": "?0"])
      case "HEAD": .status(asked)
      case "DELETE": .status(204)
      default: .status(403, text: "publish: permission denied")
      }
    }
    let error = await uploader(uploadProtocol(name), script).failure()
    #expect(error?.status == 403 && error?.side == .destination, "\(error as Any)")
    #expect(error?.message.contains("failures in a row") == false, "\(error as Any)")
    // If the upload exists, tus tries once whether the method was refused.
    let tries = name == "tus" && asked == 200 ? ["PATCH", "HEAD", "POST", "HEAD"] : ["PATCH", "HEAD"]
    #expect(script.methods == ["POST"] + tries + ["DELETE"])
  }

  /// A server that refuses before it has received the bytes may have lost the upload.
  @Test(arguments: ["tus", "resumable"]) func aRefusalBeforeTheBytesMayMeanThatTheUploadIsGone(_ name: String) async {
    let creations = Atomic(0)
    let transport = Refusing { request in
      switch request.method {
      case "POST" where request.headers["X-HTTP-Method-Override"] == nil:
        creations.add(1, ordering: .relaxed)
        return .emptyCreation(name)
      case "PATCH" where creations.load(ordering: .relaxed) > 1:
        return name == "tus" ? .at(1000) : .status(204, ["Upload-Complete": "?1"])
      default: return .status(403)
      }
    }
    #expect(await uploader(uploadProtocol(name), transport).failure() == nil)
    #expect(creations.load(ordering: .relaxed) == 2)
  }

  /// Every upload disappears once bytes were sent to it.
  @Test(arguments: ["tus", "resumable"], [404, 410])
  func newUploadsInVainAreFewAndTheOldOnesAreDeleted(_ name: String, _ status: Int) async {
    let script = Self.bounded { number, request throws(TransportError) in
      if request.method == "POST" { return .emptyCreation(name) }
      // An upload that was never known would be given up for that reason.
      if request.method == "HEAD" { return .status(200, ["Upload-Offset": "0", "Upload-Complete": "?0"]) }
      if request.method == "DELETE" { return .status(204) }
      if number % 4 == 1 { throw TransportError(.broken, "the connection broke") }
      return .status(status)
    }
    let error = await uploader(uploadProtocol(name), script).failure()
    #expect(error?.status == status && error?.message.contains("several new uploads") == true, "\(error as Any)")
    #expect(script.methods.count { $0 == "POST" } == 3)
    #expect(script.methods.count { $0 == "DELETE" } == 2)
  }

  /// The server keeps no record of a small upload, and is killed again and again while it receives one.
  @Test(arguments: ["tus", "resumable"]) func aServerThatIsKilledOftenGetsTheFileInTheEnd(_ name: String) async {
    let script = Self.bounded { number, request throws(TransportError) in
      if request.method == "POST" { return .emptyCreation(name) }
      if request.method == "HEAD" { return .status(404) }
      if number < 10 { throw TransportError(.broken, "the connection broke") }
      return name == "tus" ? .at(1000) : .status(204, ["Upload-Complete": "?1"])
    }
    let error = await uploader(uploadProtocol(name), script).failure()
    #expect(error == nil, "\(error as Any)")
    #expect(script.methods.count { $0 == "POST" } == 4)
  }

  /// The result of a try of which the server keeps some bytes.
  enum Ending: CaseIterable { case broken, refused, short }

  /// Keeps `step` bytes of each body, and reports success for the last of them.
  private static func keeping(_ step: Int64, of length: Int64, _ name: String, _ ending: Ending) -> Script {
    let kept = Atomic<Int64>(0)
    return bounded { _, request throws(TransportError) in
      if request.method == "POST" { return .emptyCreation(name) }
      if request.method == "PATCH" { kept.add(step, ordering: .relaxed) }
      let offset = min(kept.load(ordering: .relaxed), length)
      let complete = offset == length ? "?1" : "?0"
      let told = HTTPResponse.status(
        204, ["Upload-Offset": "\(offset)", "Upload-Length": "\(length)", "Upload-Complete": complete])
      if request.method != "PATCH" || offset == length { return told }
      switch ending {
      case .broken: throw TransportError(.broken, "the connection broke")
      case .refused: return .status(500)
      case .short: return told
      }
    }
  }

  /// Without a limit the file would be sent once for each byte.
  @Test(arguments: ["tus", "resumable"], Ending.allCases)
  func aServerThatKeepsAByteOfEachTryIsGivenUp(_ name: String, _ ending: Ending) async {
    let clock = LeapingClock()
    let length: Int64 = 20_000_000
    let script = Self.keeping(1, of: length, name, ending)
    let error = await uploader(uploadProtocol(name), script, clock: clock).failure(of: length)
    #expect(error?.recovery == .giveUp, "\(error as Any)")
    #expect(error?.message.contains("gave up after 9 failures in a row, in which the server kept ") == true)
    #expect(script.methods.count { $0 == "PATCH" } == 9)
    #expect(clock.waits.count == 8 && clock.waits.last ?? .zero > .seconds(8), "\(clock.waits)")
  }

  /// A mobile connection on which most bytes of each try are lost.
  @Test(arguments: ["tus", "resumable"], Ending.allCases)
  func anUploadOfWhichATwentiethArrivesPerTryComesToItsEnd(_ name: String, _ ending: Ending) async {
    let clock = LeapingClock()
    let script = Self.keeping(1_000_000, of: 20_000_000, name, ending)
    let error = await uploader(uploadProtocol(name), script, retries: 1, clock: clock).failure(of: 20_000_000)
    #expect(error == nil, "\(error as Any)")
    #expect(script.methods.count { $0 == "PATCH" } == 20)
    #expect(clock.waits.allSatisfy { $0 <= .milliseconds(250) }, "\(clock.waits)")
  }

  /// A temporarily unavailable server may ask for no delay; the file must not be sent thousands of times.
  @Test func aServerThatAsksForNoWaitIsNotSentTheFileWithoutEnd() async {
    let script = Self.bounded { number, request throws(TransportError) in
      if request.method == "POST" { return .created }
      return request.method == "PATCH" ? .status(503, ["Retry-After": "0"]) : .at(Int64(number / 2), of: 1_000_000)
    }
    var uploader = uploader(Tus(wholeUpTo: 0), script)
    uploader.retry = RetryPolicy()
    let error = await uploader.failure(of: 1_000_000)
    #expect(error?.status == 503, "\(error as Any)")
    #expect(script.methods.count { $0 == "PATCH" } < 60)
  }

  private func uploadProtocol(_ name: String) -> any UploadProtocol {
    name == "tus" ? Tus(wholeUpTo: 0) : IETFResumable()
  }
}

/// Receives no bytes of the bodies that it refuses.
private final class Refusing: Transport {
  private let answer: @Sendable (HTTPRequest) -> HTTPResponse

  init(_ answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse) { self.answer = answer }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let answer = answer(request)
    if answer.isSuccess { on.sent(Int(body?.length ?? 0)) }
    return answer
  }
}
