import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// No object is replaced unless requested, on servers that implement `If-None-Match` and on those that ignore it.
@Suite struct S3ConditionTests: S3Fixture {
  let transport = Self.connections

  /// An object that another client stores under the name meanwhile; it must not be replaced.
  private static let others = S3PeerObject(bytes: [1, 2, 3], tag: "\"x\"")

  private func send(_ names: [String], to peer: S3Peer, lengths: [Int64]? = nil) async throws -> Outcomes {
    let uploader = try await uploader(peer)
    let desk = try await Desk()
    var queue = UploadQueue(uploader, journal: desk.journal, destinationID: 0)
    queue.uploader.journal = desk.journal
    queue.jobs = 1
    return try await desk.run(queue, names, lengths: lengths)
  }

  @Test(arguments: [0, 3, 1000, 17 << 20] as [Int64], [false, true])
  func anExistingObjectStaysIfTheServerIgnoresConditions(_ length: Int64, _ heeds: Bool) async throws {
    let peer = peer { $0.knowsConditions = heeds }
    peer.change { $0.objects["a"] = Self.others }
    let error = try await failure {
      _ = try await uploader(peer).upload(PatternSource(length: length, seed: 7), as: "a")
    }
    #expect(error.side == .file && error.status == 412 && error.message.contains("of that name"), "\(error)")
    #expect(peer.objects["a"]?.bytes == [1, 2, 3] && peer.uploads.isEmpty)
  }

  @Test func theSameBytesAreASuccessWhereConditionsAreIgnored() async throws {
    let peer = peer { $0.knowsConditions = false }
    for _ in 0..<2 { _ = try await uploader(peer).upload(PatternSource(length: 1000), as: "a") }
    #expect(peer.requests.count { $0.hasPrefix("PUT") } == 1, "\(peer.requests)")
  }

  /// Some of many names are taken: the trial of the condition must not change them.
  @Test(arguments: [false, true]) func namesAreAskedForUntilTheConditionIsKnownToBeHeeded(_ heeds: Bool) async throws {
    let peer = peer { $0.knowsConditions = heeds }
    let names = (0..<40).map { "\($0)" }
    for name in ["0", "1", "20", "39"] { peer.change { $0.objects[name] = Self.others } }
    let outcomes = try await send(names, to: peer)
    #expect(outcomes.sent == 36)
    for name in ["0", "1", "20", "39"] {
      #expect(peer.objects[name]?.bytes == [1, 2, 3] && outcomes.error(name)?.status == 412)
    }
    let bytes = PatternSource(length: 1000).bytes(count: 1000)
    #expect(names.count { peer.objects[$0]?.bytes == bytes } == 36)
    let methods = peer.requests.map { $0.prefix { $0 != " " } }
    // Three names are queried before a trial is possible; two more are refused by the condition, and then queried.
    #expect(methods.count { $0 == "HEAD" } == (heeds ? 5 : 40), "\(peer.requests)")
    #expect(methods.count { $0 == "PUT" } == (heeds ? 39 : 37), "\(peer.requests)")
  }

  /// An object is sent twice only if the queries for names have cost about as much.
  @Test func aLargeObjectIsNotSentTwice() async throws {
    let peer = peer()
    let outcomes = try await send(["a", "b", "c"], to: peer, lengths: [65_537, 65_537, 131_072])
    #expect(outcomes.sent == 3)
    #expect(peer.requests.count { $0.hasPrefix("PUT") } == 4, "\(peer.requests)")
    #expect(peer.requests.filter { $0.hasPrefix("PUT") }.suffix(2).allSatisfy { $0.hasSuffix("/c") })
  }

  @Test func atAmazonNoNameIsAskedFor() async throws {
    let script = Script(.status(200, ["ETag": "\"1\""]))
    let signer = S3Signer(S3Credentials(accessKey: "A", secretKey: "s"), region: "r")
    let uploadProtocol = S3Multipart(bucketPath: "/in/", signer: signer, isAmazon: true)
    #expect(await BlobUploadTests.uploader(uploadProtocol, script, limits: uploadProtocol.limits).failure() == nil)
    #expect(script.methods == ["PUT"])
  }

  /// While the parts of a large object are sent, another client takes its name.
  @Test func aFileStoredByAnotherClientMeanwhileIsNotReplaced() async throws {
    let made = Monitor<S3Peer?>(nil)
    let peer = peer { options in
      options.knowsConditions = false
      options.refuse = { _, request in
        if request.query("partNumber") != nil { made.update { $0 }?.change { $0.objects["a"] = Self.others } }
        return nil
      }
    }
    made.update { $0 = peer }
    let error = try await failure {
      _ = try await uploader(peer).upload(PatternSource(length: 17 << 20), as: "a")
    }
    #expect(error.side == .file && error.status == 412, "\(error)")
    #expect(peer.objects["a"]?.bytes == [1, 2, 3] && peer.uploads.isEmpty)
    made.update { $0 = nil }
  }

  /// The key has only write permission. The condition is tried once, with an object of our own.
  @Test(arguments: [false, true]) func aKeyThatMayOnlyWriteReplacesNothing(_ heeds: Bool) async throws {
    let peer = peer { options in
      options.knowsConditions = heeds
      options.refuse = { _, request in
        ["HEAD", "GET"].contains(request.method) ? (403, "AccessDenied") : nil
      }
    }
    peer.change { $0.objects["1"] = Self.others }
    let uploader = try await uploader(peer)
    for name in ["0", "1", "2"] {
      let error = await uploader.failure(as: BytePath(name))
      #expect((error == nil) == (heeds && name != "1"), "\(name): \(error as Any)")
      if !heeds { #expect(error?.message.contains("--overwrite") == true, "\(error as Any)") }
    }
    #expect(peer.objects["1"]?.bytes == [1, 2, 3])
    #expect(Set(peer.objects.keys) == (heeds ? ["0", "1", "2"] : ["1"]), "the object of the trial is gone")
    #expect(peer.requests.count { $0.hasPrefix("DELETE") } == (heeds ? 1 : 3))
  }

  /// The second PUT of the trial fails in a way that does not show what the server has now.
  @Test func aTrialThatFailsIsFollowedByALook() async throws {
    let puts = Monitor(0)
    let peer = peer { options in
      options.refuse = { _, request in
        guard request.method == "PUT" else { return nil }
        let number = puts.update { count in
          count += 1
          return count
        }
        return number == 3 ? (503, "SlowDown") : nil
      }
    }
    #expect(try await send(["a", "b", "c"], to: peer).sent == 3)
    #expect(Set(peer.objects.keys) == ["a", "b", "c"])
  }
}

/// Tests successful responses of S3 servers that are no successes.
@Suite struct S3FalseSuccessTests: S3Fixture {
  let transport = Self.connections
  private static let begun = HTTPResponse.status(
    200, text: "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
  private static let error = "<Error><Code>InternalError</Code><Message>no luck</Message></Error>"

  private func uploader(_ answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse) -> Uploader {
    let signer = S3Signer(S3Credentials(accessKey: "A", secretKey: "s"), region: "r")
    var uploadProtocol = S3Multipart(bucketPath: "/in/", signer: signer)
    uploadProtocol.options.wholeUpTo = 1000
    uploadProtocol.options.smallestPart = 1
    let script = Script { _, request throws(TransportError) in answer(request) }
    return BlobUploadTests.uploader(uploadProtocol, script, retries: 1, limits: uploadProtocol.limits)
  }

  @Test func a200ThatBringsAnErrorIsNotBelieved() async {
    let small = await uploader { request in
      request.method == "PUT" ? .status(200, ["ETag": "\"1\""], text: Self.error) : .status(404)
    }.failure()
    #expect(small?.message.contains("200 InternalError: no luck") == true, "\(small as Any)")
    let large = await uploader { request in
      switch request.method {
      case "HEAD": .status(404)
      case "POST": Self.begun
      case "PUT": .status(200, ["ETag": "\"1\""], text: Self.error)
      default: .status(204)
      }
    }.failure(of: 2000)
    #expect(large?.message.contains("200 InternalError: no luck") == true, "\(large as Any)")
  }

  /// Such servers respond to every request with the same page.
  @Test func aPageForEveryURLIsNoBucket() async {
    let script = Script(.status(200, ["ETag": "W/\"5-1\""], text: "hello"))
    let signer = S3Signer(S3Credentials(accessKey: "A", secretKey: "s"), region: "r")
    let error = await #expect(throws: UploadError.self) {
      try await UploadDestination.s3(
        S3Address(bucket: "media", endpoint: "http://media.example"), signer: signer, over: script)
    }
    #expect(error?.side == .destination && error?.message.contains("without a list of the bucket") == true)
  }

  @Test(arguments: [1000, 2000] as [Int64]) func aPageIsNoAnswerToAnObject(_ length: Int64) async {
    let page = HTTPResponse(
      head: HTTPHead(status: 200, headers: ["ETag": "W/\"5-1\"", "Content-Type": "text/html"]), body: Array("<p>".utf8))
    let error = await uploader { request in
      switch request.method {
      case "POST": Self.begun
      case "PUT": page
      default: .status(404)
      }
    }.failure(of: length)
    #expect(error?.side == .destination && error?.message.contains("with a page of 3 bytes") == true, "\(error as Any)")
  }

  /// Like Ceph, which returns no ETag: the object is queried after the completion.
  @Test(
    arguments: [
      (HTTPResponse.status(404), "has nothing under that name"),
      (.status(200, ["Content-Length": "7"]), "has 7 bytes there, and was sent 2000"),
      (.status(200, ["Content-Length": "2000"]), nil), (.status(403), nil),
    ] as [(HTTPResponse, String?)])
  func aCompletionWithoutAnETagIsLookedAt(_ there: HTTPResponse, _ problem: String?) async {
    let isComplete = Atomic(false)
    let error = await uploader { request in
      switch (request.method, request.url.query ?? "") {
      case ("POST", "uploads="):
        return Self.begun
      case ("POST", _):
        isComplete.store(true, ordering: .relaxed)
        return .status(200, text: "<CompleteMultipartUploadResult/>")
      case ("PUT", _): return .status(200, ["ETag": "\"1\""])
      case ("HEAD", _) where isComplete.exchange(false, ordering: .relaxed): return there
      default: return .status(404)
      }
    }.failure(of: 2000)
    #expect((error == nil) == (problem == nil), "\(error as Any)")
    if let problem { #expect(error?.message.contains(problem) == true, "\(error as Any)") }
  }

  /// A 412 may have other reasons than a taken name.
  @Test func aConditionThatFailsForAFreeNameProvesNothing() async {
    let signer = S3Signer(S3Credentials(accessKey: "A", secretKey: "s"), region: "r")
    let uploadProtocol = S3Multipart(bucketPath: "/in/", signer: signer)
    let script = Script { _, request throws(TransportError) in request.method == "PUT" ? .status(412) : .status(404) }
    #expect(
      await BlobUploadTests.uploader(uploadProtocol, script, retries: 1, limits: uploadProtocol.limits).failure() != nil
    )
    #expect(!uploadProtocol.conditions.areHeeded)
  }

  @Test(arguments: [
    ("<Bucket>other</Bucket><Key>a.mov</Key>", false), ("<Bucket>in</Bucket><Key>b.mov</Key>", false),
    ("<Key>in/a.mov</Key>", false), ("<Bucket>in</Bucket><Key>a.mov</Key>", true), ("", true),
  ])
  func anotherNameThanOursIsNotBelieved(_ named: String, _ isOurs: Bool) async {
    let error = await uploader { request in
      switch (request.method, request.url.query ?? "") {
      case ("POST", "uploads="): Self.begun
      case ("POST", _):
        .status(200, text: "<CompleteMultipartUploadResult>\(named)<ETag>x</ETag></CompleteMultipartUploadResult>")
      case ("PUT", _): .status(200, ["ETag": "\"00000000000000000000000000000000\""])
      default: .status(404)
      }
    }.failure(of: 2000)
    #expect((error == nil) == isOurs, "\(error as Any)")
    if !isOurs { #expect(error?.message.contains("another name") == true, "\(error as Any)") }
  }

  @Test func aListOfUploadsThatGoesRoundInACircleEnds() async {
    let names = ["a", "b"]
    let pages = Monitor(0)
    let script = Script { _, _ throws(TransportError) in
      let name = names[
        pages.update {
          $0 += 1; return $0
        } % 2]
      return .status(
        200,
        text: "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>\(name)</NextKeyMarker>"
          + "<NextUploadIdMarker>1</NextUploadIdMarker></ListMultipartUploadsResult>")
    }
    let signer = S3Signer(S3Credentials(accessKey: "A", secretKey: "s"), region: "r")
    let uploadProtocol = S3Multipart(bucketPath: "/in/", signer: signer)
    let context = UploadContext(transport: script, endpoint: host, traits: uploadProtocol.traits)
    let error = await #expect(throws: UploadError.self) { try await uploadProtocol.allOrphans([], at: host, context) }
    #expect(error?.message.contains("does not end") == true && script.requests.count == 3)
  }
}
