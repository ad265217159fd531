import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests of resumable uploads with responses that the `ProtocolCheck`s on Fullbore's own server do not produce.
@Suite struct IETFTests {
  let limits = answer("204 No Content", "Upload-Limit: max-size=100000000, max-age=60\r\n")
  func told(_ location: String, version: Int = 8) -> ScriptedPeer.Step {
    .send(
      "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: \(version)\r\n"
        + "Location: \(location)\r\n\r\n")
  }

  /// A server without limits may not support the protocol, and gets the whole file in one request.
  @Test func aPlainServerHasTakenTheWhole() async throws {
    let peer = ScriptedPeer([
      .readRequest, answer("200 OK"), .readRequest, answer("201 Created"), .readRequest, answer("403 Forbidden"),
    ])
    let source = try await push(10_000_000, to: peer)
    // The final query for the file is refused.
    #expect(peer.seen.heads.count == 3)
    #expect(peer.seen.heads[1].contains("Upload-Complete: ?1\r\n"))
    let sent = peer.seen.received[0].dropLast(peer.seen.heads[2].utf8.count)
    #expect(sent.suffix(10_000_000) == source.bytes(count: 10_000_000)[...])
  }

  /// The URL arrived before the bytes, so an interrupted creation is resumed there without sending any byte twice.
  @Test(arguments: ["?0", nil]) func aCutCreationGoesOnWhereItsURLIs(_ complete: String?) async throws {
    let held = complete.map { "Upload-Complete: \($0)\r\n" } ?? ""
    let peer = ScriptedPeer(
      [.readRequest, answer("200 OK"), .readHead, told("/up/1"), .read(1_000_000), .close],
      [
        .readRequest, answer("204 No Content", "Upload-Offset: 1000000\r\n\(held)"), .readRequest,
        answer("200 OK", "Upload-Complete: ?1\r\n"),
      ])
    let source = try await push(10_000_000, to: peer)
    let seen = peer.seen
    #expect(
      seen.heads.map { String($0.prefix { $0 != "\r\n" }) }.suffix(2) == [
        "HEAD /up/1 HTTP/1.1", "PATCH /up/1 HTTP/1.1",
      ])
    #expect(seen.heads[3].contains("Upload-Offset: 1000000\r\n") && seen.heads[3].contains("Upload-Complete: ?1\r\n"))
    #expect(seen.heads[3].contains("Content-Type: application/partial-upload\r\n"))
    #expect(seen.received[1].suffix(9_000_000) == source.bytes(at: 1_000_000, count: 9_000_000)[...])
  }

  /// Interim responses of another version, or with a foreign Location, are ignored.
  @Test(arguments: [("/up/1", 7), ("http://elsewhere.example/up/1", 8)])
  func notEveryInterimAnswerIsOurs(_ location: String, _ version: Int) async throws {
    let peer = ScriptedPeer(
      [
        .readRequest, answer("200 OK"), .readHead, told(location, version: version), .read(1_000_000), .close,
      ],
      [.readRequest, answer("201 Created", "Upload-Complete: ?1\r\n")])
    _ = try await push(10_000_000, to: peer)
    #expect(peer.seen.heads.last?.hasPrefix("POST ") == true, "it was begun anew")
  }

  @Test func theErrorSaysThatTheServerTookAnEmptyCreationForTheWholeFile() async throws {
    let peer = ScriptedPeer([.readRequest, limits, .readRequest, answer("201 Created")])
    let error = await #expect(throws: UploadError.self) { try await push(10_000_000, to: peer) }
    #expect(error?.side == .destination && error?.message.contains("without Upload-Complete") == true)
  }

  @Test func aForeignLocationIsRefused() async throws {
    let peer = ScriptedPeer([
      .readRequest, limits, .readRequest,
      answer("201 Created", "Upload-Complete: ?0\r\nLocation: http://elsewhere.example/up/1\r\n"),
    ])
    let error = await #expect(throws: UploadError.self) { try await push(10_000_000, to: peer) }
    #expect(error?.message.contains("http://elsewhere.example") == true)
  }

  /// With `?1` an error is the final response of the target, so there is no retry.
  @Test func theTargetsOwnRefusalIsFinal() async throws {
    let peer = ScriptedPeer([
      .readRequest, limits, .readRequest, answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\n"),
      .readRequest, answer("503 Full", "Upload-Complete: ?1\r\n"),
    ])
    let error = await #expect(throws: UploadError.self) { try await push(10_000_000, to: peer) }
    #expect(error?.status == 503 && error?.recovery == .giveUp)
    #expect(peer.seen.heads.count == 3)
  }

  @Test func limitsAreKept() async throws {
    let narrow = answer("204 No Content", "Upload-Limit: max-append-size=1000, min-append-size=10, max-size=2500\r\n")
    let taken = [1000, 2000].flatMap { offset -> [ScriptedPeer.Step] in
      [.readRequest, answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: \(offset)\r\n")]
    }
    let created = answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\n")
    let peer = ScriptedPeer(
      [.readRequest, narrow, .readRequest, created] + taken + [
        .readRequest, answer("200 OK", "Upload-Complete: ?1\r\n"),
      ])
    _ = try await push(2500, to: peer)
    #expect(peer.seen.heads.suffix(3).map { $0.contains("Content-Length: 1000\r\n") } == [true, true, false])
    let small = ScriptedPeer([.readRequest, narrow])
    let error = await #expect(throws: UploadError.self) { try await push(2501, to: small) }
    #expect(error?.message.contains("2500 at most") == true)
  }

  /// An upload may have tighter limits than its server: they are in the response to its creation.
  @Test func theUploadsOwnLimitsAreKept() async throws {
    let taken = [1000, 2000].flatMap { offset -> [ScriptedPeer.Step] in
      [.readRequest, answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: \(offset)\r\n")]
    }
    let peer = ScriptedPeer(
      [
        .readRequest, answer("204 No Content", "Upload-Limit: max-append-size=2000\r\n"), .readRequest,
        answer(
          "201 Created",
          "Upload-Complete: ?0\r\nLocation: /up/1\r\nUpload-Limit: max-append-size=1000, max-age=60\r\n"),
      ] + taken + [.readRequest, answer("200 OK", "Upload-Complete: ?1\r\n")])
    _ = try await push(2500, to: peer)
    #expect(peer.seen.heads.suffix(3).map { $0.contains("Content-Length: 1000\r\n") } == [true, true, false])
    #expect(peer.seen.heads.last?.contains("Content-Length: 500\r\n") == true)
  }

  /// A part size below the server's minimum is increased; only the last part may be smaller.
  @Test func noAppendButTheLastIsTooSmall() async throws {
    let least = answer("204 No Content", "Upload-Limit: min-append-size=2000, max-append-size=2000\r\n")
    let peer = ScriptedPeer([
      .readRequest, least, .readRequest, answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\n"),
      .readRequest, answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: 2000\r\n"), .readRequest,
      answer("200 OK", "Upload-Complete: ?1\r\n"),
    ])
    _ = try await push(2500, to: peer, partSize: 700)
    #expect(peer.seen.heads[2].contains("Content-Length: 2000\r\n"))
    #expect(peer.seen.heads[3].contains("Content-Length: 500\r\n"))
  }

  @Test func anUploadThatCanNeverBeWholeIsDeleted() async throws {
    let peer = ScriptedPeer([
      .readRequest, answer("204 No Content", "Upload-Limit: max-append-size=1000\r\n"), .readRequest,
      answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\nUpload-Limit: max-size=2000\r\n"),
      .readRequest, answer("204 No Content"),
    ])
    let error = await #expect(throws: UploadError.self) { try await push(2500, to: peer) }
    #expect(error?.message.contains("2500 bytes, and the server takes 2000 at most") == true, "\(error as Any)")
    #expect(peer.seen.heads.last?.hasPrefix("DELETE /up/1 ") == true)
  }

  /// The response 413 contains a new limit.
  @Test func aRefusedAppendIsSentAgainWithinTheLimitOfTheResponse() async throws {
    let peer = ScriptedPeer([
      .readRequest, answer("204 No Content", "Upload-Limit: max-append-size=100000\r\n"), .readRequest,
      answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\n"), .readRequest,
      answer("413 Too Large", "Upload-Complete: ?0\r\nUpload-Limit: max-append-size=75000\r\n"), .readRequest,
      answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: 0\r\n"), .readRequest,
      answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: 75000\r\n"), .readRequest,
      answer("200 OK", "Upload-Complete: ?1\r\n"),
    ])
    _ = try await push(150_000, to: peer)
    #expect(peer.seen.heads[2].contains("Content-Length: 100000\r\n"))
    #expect(peer.seen.heads[4].contains("Content-Length: 75000\r\n"))
  }

  /// A limit of 0, a negative limit, and a minimum above the maximum.
  @Test(arguments: ["max-append-size=0", "max-append-size=-1", "max-append-size=1500, min-append-size=9000"])
  func aLimitThatNothingCanKeepIsIgnored(_ limit: String) async throws {
    let peer = ScriptedPeer([
      .readRequest, answer("204 No Content", "Upload-Limit: \(limit), max-size=-7\r\n"), .readRequest,
      answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\nUpload-Limit: \(limit)\r\n"), .readRequest,
      answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: 1500\r\n"), .readRequest,
      answer("200 OK", "Upload-Complete: ?1\r\n"),
    ])
    _ = try await push(2500, to: peer, wholeUpTo: 0)
    #expect(peer.seen.heads[2].contains("Content-Length: \(limit.contains("1500") ? 1500 : 2500)\r\n"))
  }

  /// One byte per request would never finish. OPTIONS, the creation or a refusal reports this limit.
  @Test(arguments: 0..<3) func aServerThatTakesNextToNothingAtOnceIsRefused(_ when: Int) async throws {
    let tiny = "Upload-Limit: max-append-size=1\r\n"
    let peer = ScriptedPeer([
      .readRequest, answer("204 No Content", when == 0 ? tiny : "Upload-Limit: max-age=60\r\n"), .readRequest,
      answer("201 Created", "Upload-Complete: ?0\r\nLocation: /up/1\r\n" + (when == 1 ? tiny : "")), .readRequest,
      answer("413 Too Large", "Upload-Complete: ?0\r\n" + tiny), .readRequest,
      answer("204 No Content", "Upload-Complete: ?0\r\nUpload-Offset: 0\r\n"), .discard,
    ])
    let error = await #expect(throws: UploadError.self) { try await push(50_000, to: peer, wholeUpTo: 0) }
    #expect(error?.recovery == .giveUp)
    #expect(when == 2 || error?.message.contains("takes only 1 bytes in one request") == true, "\(error as Any)")
    #expect(peer.seen.heads.count <= 4)
  }

  /// Like tusd, which treats a request of another version as one of tus.
  @Test(arguments: ["asked", "told", "tus"]) func anotherVersionOfTheProtocolIsNamed(_ how: String) async {
    let script = Script { _, request throws(TransportError) in
      let version = request.headers["Upload-Draft-Interop-Version"]
      if request.method == "POST" {
        return .status(412, how == "told" ? ["Upload-Draft-Interop-Version": "6"] : ["Tus-Resumable": "1.0.0"])
      }
      return .status(200, version == "6" ? ["Upload-Limit": "min-size=0"] : ["Tus-Version": "1.0.0"])
    }
    let error = await uploader(IETFResumable(), script, limits: PartLimits(firstPart: .max)).failure()
    #expect(error?.side == .destination && error?.status == nil)
    #expect(error?.message.contains("speaks interop version 6") == true, "\(error as Any)")
    #expect(error?.message.contains("fullbore speaks version 8") == true)
    #expect(error?.message.contains(how == "told" ? "put+" : "tus+") == true)
  }

  /// A server that offered the protocol must respond in it: any other response may be a page from an intermediary.
  @Test func aPageInPlaceOfAnAnswerInTheProtocolIsNotBelieved() async throws {
    for head in [nil, "1000", "670"] {
      let script = Script { _, request throws(TransportError) in
        switch request.method {
        case "OPTIONS": .status(204, ["Upload-Limit": "max-age=60"])
        case "POST": .status(200, ["Content-Type": "text/html"])
        default: head.map { .status(200, ["Content-Length": $0]) } ?? .status(403)
        }
      }
      var one = uploader(IETFResumable(), script)
      one.destination = try await UploadDestination.discover(host, named: "resumable", over: script)
      one.destination.acquaintance.putAnswers.trust(folderOf: host)
      let error = await one.failure()
      #expect((error == nil) == (head == "1000"), "\(error as Any)")
      #expect(error == nil || error?.message.contains("without Upload-Complete") == true, "\(error as Any)")
    }
  }

  /// Like tusd: the final response does not mention the upload, but its own URL reports the state.
  @Test func anAnswerWithoutAWordIsAskedAboutAtTheUploadsURL() async throws {
    let peer = ScriptedPeer([
      .readRequest, limits, .readRequest, told("/up/1"), answer("200 OK"), .readRequest,
      answer("204 No Content", "Upload-Offset: 1000\r\nUpload-Complete: ?1\r\n"),
    ])
    _ = try await push(1000, to: peer)
    #expect(peer.seen.heads.last?.hasPrefix("HEAD /up/1 ") == true)
  }

  /// The refusal of a server that supports our version, or none, is reported unchanged.
  @Test(arguments: [["Upload-Limit": "max-age=60"], [:]] as [HTTPHeaders])
  func anOrdinaryRefusalStaysWhatItIs(_ offered: HTTPHeaders) async {
    let script = Script { _, request throws(TransportError) in
      request.method == "POST" ? .status(412) : .status(200, offered)
    }
    let error = await uploader(IETFResumable(), script, limits: PartLimits(firstPart: .max)).failure()
    #expect(error?.status == 412)
  }

  /// The final request must be about all bytes: completing the upload at another offset would truncate it.
  @Test func anUploadIsNotEndedBeforeAllIsThere() async throws {
    let script = Script(.status(200, ["Upload-Complete": "?0", "Upload-Offset": "400"]))
    let context = UploadContext(transport: script, endpoint: host, traits: IETFResumable().traits)
    let session = UploadSession(state: ["url": "\(host)up/1", "length": "1000"])
    let error = await #expect(throws: UploadError.self) {
      _ = try await IETFResumable().complete(session, [], context)
    }
    #expect(error?.recovery == .resync && script.methods == ["HEAD"])
  }

  @discardableResult
  func push(
    _ length: Int64, to peer: ScriptedPeer, partSize: Int64? = nil, wholeUpTo: Int64? = nil
  ) async throws -> PatternSource {
    let url = HTTPURL("http://127.0.0.1:\(peer.port)/")!
    let transport = SocketTransport()
    var destination = try await UploadDestination.discover(url, named: "resumable", over: transport)
    if let wholeUpTo { destination.limits.firstPart = wholeUpTo }
    let uploader = Uploader(
      destination, transport: transport, retry: RetryPolicy(retries: 2, first: .milliseconds(1)), partSize: partSize)
    let source = PatternSource(length: length, seed: 9)
    _ = try await uploader.upload(source, source.info, to: destination.target("a", length: length))
    return source
  }
}

func answer(_ status: String, _ fields: String = "") -> ScriptedPeer.Step {
  let length = status.hasPrefix("204") ? "" : "Content-Length: 0\r\n"
  return .send("HTTP/1.1 \(status)\r\n\(length)\(fields)\r\n")
}
