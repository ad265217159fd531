import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Tests the recovery after each kind of error.
@Suite struct RecoveryTests {
  private static let broken = TransportError(.broken, "the connection broke")

  @Test func aServersRetryAfterIsWaitedFor() async {
    let clock = LeapingClock()
    let script = Script(.status(503, ["Retry-After": "7"]), .status(429, ["Retry-After": "0"]), .status(201))
    #expect(await uploader(PlainPut(), script, clock: clock).failure() == nil)
    #expect(clock.waits == [.seconds(7), .zero])
  }

  @Test func afterABrokenConnectionTheServerIsAskedFirst() async {
    let script = Script { number, _ throws(TransportError) in
      switch number {
      case 0: return .created
      case 1: throw Self.broken
      case 2: return .at(400, of: 1000)
      default: return .at(1000)
      }
    }
    #expect(await uploader(Tus(), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "HEAD", "PATCH"])
    #expect(script.requests[3].headers["Upload-Offset"] == "400")
  }

  /// The server may still have the session, so a deletion is sent.
  @Test(arguments: [404, 410]) func aSessionThatIsGoneIsBegunAnew(_ status: Int) async {
    let script = Script { number, request throws(TransportError) in
      if request.method == "POST" { return .created }
      return number <= 2 ? .status(status) : .at(1000)
    }
    #expect(await uploader(Tus(), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "DELETE", "POST", "PATCH"])
  }

  /// Most likely an earlier request of ours still holds the lock.
  @Test(arguments: [409, 423, 460]) func aSessionThatIsElsewhereOrLockedIsAskedAgain(_ status: Int) async {
    let script = Script { number, request throws(TransportError) in
      switch request.method {
      case "POST": .created
      case "HEAD": .at(300, of: 1000)
      default: number == 1 ? .status(status) : .at(1000)
      }
    }
    #expect(await uploader(Tus(), script).failure() == nil)
    // After a 409 a query shows whether the upload has ended.
    #expect(script.methods == ["POST", "PATCH"] + (status == 409 ? ["HEAD", "HEAD"] : ["HEAD"]) + ["PATCH"])
    #expect(script.requests.last?.headers["Upload-Offset"] == "300")
  }

  /// The expiry in the journal dates from the creation, or from the last finished request: a long request has kept the
  /// upload alive since.
  @Test(arguments: [true, false]) func aSessionThatHasExpiredByTheJournalIsAskedFor(_ lives: Bool) async throws {
    let script = Script { number, request throws(TransportError) in
      switch request.method {
      case "POST": .created
      case "HEAD": lives ? .at(300, of: 1000) : .status(410)
      default: .at(1000)
      }
    }
    let one = uploader(Tus(), script)
    let source = PatternSource(length: 1000)
    let session = UploadSession(state: ["url": "\(host)old", "length": "1000"], expires: 1000)
    _ = try await one.upload(source, source.info, to: one.destination.target("a", length: 1000), resuming: session)
    #expect(script.methods == (lives ? ["HEAD", "PATCH"] : ["HEAD", "POST", "PATCH"]))
    #expect(script.requests.last?.headers["Upload-Offset"] == (lives ? "300" : "0"))
  }

  /// A proxy that rewrites paths makes each upload unreachable: every further try would leave one more upload there.
  @Test func anUploadThatIsUnknownRightAfterItsCreationIsMadeTwiceAtTheMost() async {
    let script = Script { _, request throws(TransportError) in
      request.method == "POST" ? .created : .status(404)
    }
    let error = await uploader(Tus(), script).failure()
    #expect(script.methods == ["POST", "PATCH", "DELETE", "POST", "PATCH"])
    #expect(error?.message.contains("http://media.example/up/1") == true, "\(error as Any)")
    #expect(error?.message.contains("proxy") == true && error?.side == .file, "\(error as Any)")
  }

  /// A connection that always breaks after some bytes would never transfer the whole file.
  @Test(arguments: ["tus", "resumable"]) func aCreationThatBreaksInItsBodyIsFollowedByAnEmptyOne(_ name: String) async {
    let script = Script { number, request throws(TransportError) in
      if number == 0 { throw Self.broken }
      if request.method == "POST" { return .emptyCreation(name) }
      return name == "tus" ? .at(1000) : .status(204, ["Upload-Complete": "?1", "Upload-Offset": "1000"])
    }
    let uploadProtocol: any UploadProtocol = name == "tus" ? Tus() : IETFResumable()
    #expect(await uploader(uploadProtocol, script, limits: PartLimits(firstPart: 4 << 20)).failure() == nil)
    #expect(script.methods == ["POST", "POST", "PATCH"])
    if name == "tus" { #expect(script.requests.map { $0.headers["Content-Type"] != nil } == [true, false, true]) }
  }

  /// No byte of the body was sent.
  @Test func aCreationThatNeverBeganIsSentWholeAgain() async {
    let script = Script { number, _ throws(TransportError) in
      if number == 0 { throw TransportError(.connect, "refused") }
      return .status(201, ["Location": "/up/1", "Upload-Offset": "1000"])
    }
    #expect(await uploader(Tus(), script, limits: PartLimits(firstPart: 4 << 20)).failure() == nil)
    #expect(script.methods == ["POST", "POST"])
  }

  @Test func aServerThatLosesEverySessionIsGivenUp() async {
    // The server stores the first part each time, so there always is an acknowledged byte.
    let script = Script { _, request throws(TransportError) in
      if request.method == "POST" { return .created }
      return request.headers["Upload-Offset"] == "0" ? .at(100) : .status(404)
    }
    let error = await uploader(Tus(), script, retries: 3, partSize: 100).failure()
    #expect(error?.recovery == .giveUp)
    #expect(script.methods.count { $0 == "POST" } == 4)
  }

  @Test func failuresAreCountedSinceTheServerLastKeptAFairShare() async {
    // Every PATCH breaks, and the server has 50 bytes more each time: 20 failures, but never two without progress.
    let script = Script { number, request throws(TransportError) in
      if request.method == "POST" { return .created }
      if request.method == "PATCH" { throw Self.broken }
      return .at(Int64(number / 2) * 50, of: 1000)
    }
    #expect(await uploader(Tus(), script, retries: 1).failure() == nil)
    #expect(script.methods.count { $0 == "PATCH" } == 20)
  }

  @Test func aServerThatAcknowledgesNothingIsGivenUp() async {
    let script = Script { _, request throws(TransportError) in
      request.method == "POST" ? .created : .at(0, of: 1000)
    }
    let error = await uploader(Tus(), script, retries: 3).failure()
    #expect(error?.message.contains("keeps nothing") == true)
    #expect(error?.message.contains("gave up after 4 failures") == true)
    #expect(script.methods.count { $0 == "PATCH" } == 4)
  }

  @Test func aSmallerOffsetIsAskedAbout() async {
    let script = Script(.created, .at(500), .at(100), .at(200, of: 1000), .at(1000))
    #expect(await uploader(Tus(), script).failure() == nil)
    #expect(script.methods == ["POST", "PATCH", "PATCH", "HEAD", "PATCH"])
    #expect(script.requests[4].headers["Upload-Offset"] == "200")
  }

  @Test func aServerCannotHoldMoreThanItWasSent() async {
    let script = Script(.created, .at(500))
    let error = await uploader(Tus(), script, partSize: 100).failure()
    #expect(error?.message.contains("holds 500 bytes, and was sent 100") == true)
    #expect(script.requests.count == 2)
  }

  @Test func aServerThatExpectsAnotherLengthGetsANewUpload() async {
    let script = Script(.at(100, of: 2000), .created, .at(1000))
    let one = uploader(Tus(), script)
    let source = PatternSource(length: 1000)
    let session = UploadSession(state: ["url": "\(host)old", "length": "1000"])
    let target = one.destination.target("a", length: 1000)
    _ = try? await one.upload(source, source.info, to: target, resuming: session)
    #expect(script.methods == ["HEAD", "POST", "PATCH"])
  }

  /// A 409 for a wrong offset and one for other bytes under the name differ in whether the upload still exists.
  @Test func aConflictThatEndsTheUploadIsFinal() async {
    let gone = Script(.created, .status(409, text: "a.mov exists with other bytes"), .status(410))
    let error = await uploader(Tus(), gone).failure()
    #expect(error?.side == .file)
    #expect(error?.message.contains("exists with other bytes") == true)
    #expect(gone.methods == ["POST", "PATCH", "HEAD"])

    let moved = Script(.created, .status(409), .at(300, of: 1000), .at(300, of: 1000), .at(1000))
    #expect(await uploader(Tus(), moved).failure() == nil)
    #expect(moved.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
  }

  /// The error does not mention the name of the file, for which there would be advice.
  @Test func theErrorNamesAnOffsetThatIsAlwaysWrong() async {
    let script = Script { _, request throws(TransportError) in
      switch request.method {
      case "POST": .created
      case "PATCH": .status(409)
      default: .at(0, of: 1000)
      }
    }
    let error = await uploader(Tus(), script, retries: 1).failure()
    #expect(
      error?.message.contains("answered 409 to bytes from 0 on: it says that it holds 0 bytes") == true,
      "\(error as Any)")
    #expect(error?.status == nil && error?.side == .file)
  }

  @Test func aPlaceThatNeverAnsweredIsGivenUpSoon() async {
    let script = Script { _, _ throws(TransportError) in throw TransportError(.connect, "nobody listens") }
    var uploader = uploader(PlainPut(), script)
    uploader.retry = RetryPolicy()
    let error = await uploader.failure()
    #expect(error?.isUnreachable == true)
    #expect(error?.side == .destination)
    #expect(script.requests.count == 2)
  }

  @Test func aNumberOfRetriesCountsWhereNothingWasReached() async {
    let script = Script { _, _ throws(TransportError) in throw TransportError(.connect, "nobody listens") }
    #expect(await uploader(PlainPut(), script, retries: 5).failure()?.isUnreachable == true)
    #expect(script.requests.count == 6)
  }

  /// The destination received some bytes, so it exists, and may become available again.
  @Test func aPlaceThatWasReachedIsWaitedFor() async {
    let script = Sinking(Script { _, _ throws(TransportError) in throw TransportError(.connect, "nobody listens") })
    let error = await uploader(PlainPut(), script, retries: 5).failure()
    #expect(script.inner.requests.count == 6)
    #expect(error?.side == .destination)
  }

  @Test func aPlaceThatHasAnsweredIsWaitedFor() async {
    let script = Script { number, _ throws(TransportError) in
      if number == 0 { return .status(503) }
      throw TransportError(.connect, "nobody listens")
    }
    _ = await uploader(PlainPut(), script, retries: 5).failure()
    #expect(script.requests.count == 6)
  }

  @Test func a403IsAnErrorOfTheDestinationUntilTheFirstFileIsStored() async {
    let script = Script(.status(403), .status(201), .status(403))
    let one = uploader(PlainPut(), script)
    #expect(await one.failure()?.side == .destination)
    #expect(await one.failure() == nil)
    #expect(await one.failure()?.side == .file)
  }

  @Test(
    arguments: [
      (400, .file), (401, .destination), (404, .destination), (405, .destination), (407, .destination), (409, .file),
      (412, .file), (413, .file), (415, .file), (301, .destination), (307, .destination), (501, .destination),
      (507, .destination),
    ] as [(Int, UploadError.Side)])
  func aStatusThatStaysIsFinal(_ status: Int, _ side: UploadError.Side) async {
    for uploadProtocol in [PlainPut(), Tus()] as [any UploadProtocol] {
      let script = Script(.status(status, text: "no more of this\u{1B}[31m"))
      let error = await uploader(uploadProtocol, script).failure()
      #expect(error?.side == side && error?.status == status)
      // Each of these may mean that the folder is missing, and 405 that a folder has the name. The server is asked.
      let questions = uploadProtocol is PlainPut ? [404: 1, 405: 3, 409: 1] : [:]
      #expect(script.requests.count == 1 + (questions[status] ?? 0), "\(script.requests.map(\.method))")
      #expect(error?.message.contains("\(status) (") == true || status / 100 == 3)
      #expect(error?.message.contains("\u{1B}") == false, "a terminal would obey this")
    }
  }

  @Test(arguments: [408, 425, 429, 500, 502, 503, 504]) func aStatusThatPassesIsTriedAgain(_ status: Int) async {
    let script = Script(.status(status))
    let error = await uploader(PlainPut(), script, retries: 3).failure()
    #expect(error?.side == .file)
    #expect(error?.message.contains("gave up after 4 failures") == true)
    #expect(script.requests.count == 4)
  }

  @Test func progressForgetsASessionThatIsLost() async throws {
    // The sequence is HEAD, PATCH, DELETE, POST, PATCH.
    let script = Script(.at(600, of: 1000), .status(404), .status(404), .created, .at(1000))
    let one = uploader(Tus(), script)
    let source = PatternSource(length: 1000)
    let totals = UploadTotals()
    let progress = UploadProgress(totals: totals)
    _ = try await one.upload(
      source, source.info, to: one.destination.target("a", length: 1000),
      resuming: UploadSession(state: ["url": "\(host)old", "length": "1000"]), progress: progress)
    #expect(progress.acknowledged == 1000)
    #expect(progress.resumed == 0)
    #expect(totals.acknowledged == 1000)
    #expect(totals.sent == 1400)
  }

  @Test func anUnknownLengthIsAnErrorIfTheServerNeedsTheLength() async {
    let script = Script(.created)
    let one = uploader(Tus(), script, limits: PartLimits(needsLength: true))
    let error = await #expect(throws: UploadError.self) {
      _ = try await one.upload(PatternSource(length: 13 << 20, access: .sequential, knowsLength: false), as: "a")
    }
    #expect(error?.side == .file && error?.message.contains("wants it before the first one") == true)
    #expect(script.requests.isEmpty)
  }
}

/// Reports one sent byte of each body before it forwards the request.
private struct Sinking: Transport {
  let inner: Script
  init(_ inner: Script) { self.inner = inner }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    on.sent(1)
    return try await inner.send(request, body: body, on)
  }
}
