import BlobHTTP
import BlobTesting
import Blobs
import Testing

@testable import BlobUpload

/// Against a strict server in memory; what every dialect promises is in `ProtocolTests`.
@Suite struct S3Tests {
  private let transport = CurlTransport(.init(lanes: 16, noProgress: .seconds(30)))

  private func uploader(
    _ peer: S3Peer, _ options: S3Multipart.Options = .init(partSize: 5 << 20), signer: S3Signer? = nil,
    partSize: Int64? = nil, retries: Int = 8
  ) async throws -> Uploader {
    let signer = signer ?? S3Signer(peer.options.credentials, region: peer.options.region)
    let destination = try await UploadDestination.s3(
      S3Address(bucket: peer.options.bucket, endpoint: "http://127.0.0.1:\(peer.port)", region: signer.region),
      signer: signer, options: options, over: transport)
    var uploader = Uploader(
      destination, transport: transport, retry: RetryPolicy(retries: retries), partSize: partSize)
    uploader.clock = LeapingClock()
    return uploader
  }

  private func peer(_ change: (inout S3Peer.Options) -> Void = { _ in }) -> S3Peer {
    var options = S3Peer.Options()
    change(&options)
    return S3Peer(options)
  }

  private func failure(_ body: () async throws -> Void) async throws -> UploadError {
    do { try await body() } catch { return try #require(error as? UploadError) }
    throw CheckFailure("nothing was thrown")
  }

  // MARK: Objects

  @Test func aSmallObjectIsOnePut() async throws {
    let peer = peer()
    let pattern = PatternSource(length: 50_000)
    var options = S3Multipart.Options(storageClass: "STANDARD_IA", metadata: ["trip": "Norway 2026"])
    options.checksum = .crc64nvme
    _ = try await uploader(peer, options).upload(pattern, as: "2026/a b+c&ä.jpg", contentType: "image/jpeg")
    let object = try #require(peer.objects["2026/a b+c&ä.jpg"])
    #expect(object.bytes == pattern.bytes(count: 50_000))
    #expect(object.fields["content-type"] == "image/jpeg" && object.fields["x-amz-storage-class"] == "STANDARD_IA")
    #expect(object.fields["x-amz-meta-trip"] == "Norway 2026")
    // And the question whether the bucket is there.
    #expect(peer.requests.count == 2)
  }

  @Test func aLargeObjectGoesInPartsAtOnce() async throws {
    let peer = peer()
    let pattern = PatternSource(length: (17 << 20) + 1)
    let progress = Progress()
    let uploader = try await uploader(peer)
    let target = uploader.destination.target("film.mov", length: pattern.length, contentType: "video/quicktime")
    let result = try await uploader.upload(pattern, pattern.info, to: target, progress: progress)
    let object = try #require(peer.objects["film.mov"])
    #expect(object.bytes == pattern.bytes(count: Int(pattern.length)))
    #expect(object.tag.hasSuffix("-4\"") && result.state["etag"] == object.tag)
    #expect(object.fields["content-type"] == "video/quicktime")
    #expect(progress.acknowledged == pattern.length && progress.sent == pattern.length)
    #expect(peer.uploads.isEmpty)
  }

  @Test func virtualHostsNameTheBucket() async throws {
    let peer = peer()
    let pattern = PatternSource(length: 1000)
    let destination = try await UploadDestination.s3(
      S3Address(bucket: peer.options.bucket, endpoint: "http://localhost:\(peer.port)", isVirtual: true),
      prefix: Array("in/".utf8), signer: S3Signer(peer.options.credentials, region: "us-east-1"), over: transport)
    #expect(destination.endpoint.host == "media.localhost")
    _ = try await Uploader(destination, transport: transport).upload(pattern, as: "a.jpg")
    #expect(peer.objects["in/a.jpg"]?.bytes == pattern.bytes(count: 1000))
  }

  /// Framed as `aws-chunked`: the source is read once.
  @Test func aChecksumMayFollowTheBody() async throws {
    let peer = peer()
    let signer = S3Signer(peer.options.credentials, region: "us-east-1")
    for length: Int64 in [1, 1000, 1_000_000] {
      let pattern = PatternSource(length: length)
      let body = try await S3Body.make(
        BlobSlice(pattern, length: length, validator: pattern.info.validator), .crc32c, .trailer, isSecure: true,
        signsPayload: false)
      #expect(body.checksum == nil)
      var request = HTTPRequest("PUT", try #require(peer.endpoint.resolve("\(length)")), body.headers)
      signer.sign(&request)
      let response = try await transport.send(request, body: body.slice, Exchange())
      #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
      #expect(peer.objects["\(length)"]?.bytes == pattern.bytes(count: Int(length)))
      #expect(body.checksum == Digest.value(of: pattern.bytes(count: Int(length)), .crc32c))
    }
    // One bit less than what was said.
    let lie = S3SummedSource(BlobSlice(DataSource("abc"), length: 3), 3, .crc32c, isFramed: true) { _ in }
    let reader = try lie.open(at: 0, Cancellation())
    var bytes = try read(reader)
    bytes[3] ^= 1
    var request = HTTPRequest(
      "PUT", try #require(peer.endpoint.resolve("lie")),
      [
        "x-amz-content-sha256": S3Signature.unsignedTrailer, "Content-Encoding": "aws-chunked",
        "x-amz-decoded-content-length": "3", "x-amz-trailer": "x-amz-checksum-crc32c",
      ])
    signer.sign(&request)
    let response = try await transport.send(request, body: BlobSlice(DataSource(bytes)), Exchange())
    #expect(S3Refusal(response)?.code == "BadDigest")
  }

  /// Over TLS, to a server that would not look at it: nothing is read for it beforehand.
  @Test func aChecksumNoOneLooksAtIsWorkedOutInPassing() async throws {
    for length: Int64 in [1, 7, 100_000] {
      let source = CountingSource(PatternSource(length: length))
      let body = try await S3Body.make(
        BlobSlice(source, length: length), .crc32c, .none, isSecure: true, signsPayload: false)
      #expect(source.count == 0 && body.checksum == nil && body.slice.length == length)
      #expect(body.headers["x-amz-content-sha256"] == S3Signature.unsignedPayload)
      let bytes = try read(try body.slice.open(Cancellation()))
      #expect(bytes == PatternSource(length: length).bytes(count: Int(length)))
      #expect(body.checksum == Digest.value(of: bytes, .crc32c))
    }
    let acquaintance = S3Acquaintance()
    #expect(acquaintance.heedsChecksums == nil)
    acquaintance.note(echo: nil)
    #expect(acquaintance.heedsChecksums == false)
  }

  private func read(_ reader: any BlobReader) throws -> [UInt8] {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 7)
    while true {
      let count = try buffer.withUnsafeMutableBytes { try reader.read(into: $0) }
      if count == 0 { return all }
      all += buffer[..<count]
    }
  }

  // MARK: What is there already

  @Test func theSameBytesUnderTheNameAreASuccessWithoutSendingThem() async throws {
    let peer = peer()
    let pattern = PatternSource(length: 17 << 20)
    for _ in 0..<2 { _ = try await uploader(peer).upload(pattern, as: "a") }
    #expect(peer.requests.filter { $0.hasPrefix("POST") }.count == 2, "\(peer.requests)")
  }

  @Test(arguments: [1000, 17 << 20] as [Int64]) func otherBytesAreNotOverwritten(_ length: Int64) async throws {
    let peer = peer()
    let old = PatternSource(length: length, seed: 1)
    _ = try await uploader(peer).upload(old, as: "a")
    let error = try await failure {
      _ = try await uploader(peer).upload(PatternSource(length: length, seed: 2), as: "a")
    }
    #expect(error.side == .file && error.status == 412 && error.message.contains("other bytes"), "\(error)")
    #expect(peer.objects["a"]?.bytes == old.bytes(count: Int(length)))
    #expect(peer.uploads.isEmpty)
  }

  @Test func whoComesSecondDoesNotOverwriteAndLeavesNothingBehind() async throws {
    let pattern = PatternSource(length: 17 << 20)
    let other = S3PeerObject(bytes: [1], tag: "\"x\"", fields: [:], checksums: [:])
    let made = Monitor<S3Peer?>(nil)
    let peer = peer { options in
      options.refuse = { _, request in
        // Just before the last request.
        if request.method == "POST", request.query("uploadId") != nil {
          made.update { $0 }?.change { $0.objects["a"] = other }
        }
        return nil
      }
    }
    made.update { $0 = peer }
    let error = try await failure { _ = try await uploader(peer).upload(pattern, as: "a") }
    #expect(error.side == .file && error.status == 412, "\(error)")
    #expect(peer.objects["a"]?.bytes == [1] && peer.uploads.isEmpty)
    made.update { $0 = nil }
  }

  // MARK: What goes wrong

  @Test func aPartThatVanishesIsSentAgain() async throws {
    let pattern = PatternSource(length: 17 << 20)
    let made = Monitor<S3Peer?>(nil)
    let times = Monitor(0)
    let peer = peer { options in
      options.refuse = { _, request in
        guard request.method == "POST", request.query("uploadId") != nil else { return nil }
        if times.update({
          $0 += 1; return $0
        }) == 1 {
          made.update { $0 }?.change { state in for id in state.uploads.keys { state.uploads[id]!.parts[2] = nil } }
        }
        return nil
      }
    }
    made.update { $0 = peer }
    _ = try await uploader(peer).upload(pattern, as: "a")
    #expect(peer.objects["a"]?.bytes == pattern.bytes(count: 17 << 20))
    #expect(peer.requests.filter { $0.contains("partNumber=") }.count == 5)
    made.update { $0 = nil }
  }

  /// 200 may come before the server knows.
  @Test(arguments: ["InternalError", "SlowDown"]) func aSuccessThatCarriesAnErrorIsNone(_ code: String) async throws {
    let pattern = PatternSource(length: 17 << 20)
    let times = Monitor(0)
    let peer = peer { options in
      options.refuse = { _, request in
        guard request.method == "POST", request.query("uploadId") != nil else { return nil }
        return times.update({
          $0 += 1; return $0
        }) < 3 ? (200, code) : nil
      }
    }
    _ = try await uploader(peer).upload(pattern, as: "a")
    #expect(peer.objects["a"]?.bytes == pattern.bytes(count: 17 << 20))
  }

  @Test func everyPartBacksOffByItself() async throws {
    let pattern = PatternSource(length: 30 << 20)
    let seen = Monitor<[String: Int]>([:])
    let peer = peer { options in
      options.refuse = { _, request in
        guard let number = request.query("partNumber") else { return nil }
        let count = seen.update { seen in
          seen[number, default: 0] += 1
          return seen[number]!
        }
        return count < 3 ? (503, "SlowDown") : nil
      }
    }
    _ = try await uploader(peer, retries: 2).upload(pattern, as: "a")
    #expect(peer.objects["a"]?.bytes == pattern.bytes(count: 30 << 20))
    #expect(seen.update { Set($0.values) } == [3])
  }

  @Test func aWrongClockIsCorrectedOnce() async throws {
    let peer = peer { $0.clockAhead = -5 * 3600 }
    let pattern = PatternSource(length: 17 << 20)
    _ = try await uploader(peer).upload(pattern, as: "a")
    #expect(peer.objects["a"]?.bytes == pattern.bytes(count: 17 << 20))
    // The first request alone was sent twice.
    #expect(peer.requests.filter { $0.contains("list-type") }.count == 2)
  }

  @Test func aBucketInAnotherRegionIsFound() async throws {
    let peer = peer { $0.region = "eu-west-1" }
    let signer = S3Signer(peer.options.credentials, region: "us-east-1")
    _ = try await uploader(peer, signer: signer).upload(PatternSource(length: 10), as: "a")
    #expect(signer.region == "eu-west-1" && peer.objects["a"] != nil)
  }

  @Test func wrongKeysAndBucketsAreNamedBeforeTheFirstByte() async throws {
    let peer = peer { $0.expiredToken = "old-token" }
    let right = peer.options.credentials
    for (credentials, wanted) in [
      (S3Credentials(accessKey: "AKIANOBODY", secretKey: right.secretKey), "InvalidAccessKeyId"),
      (S3Credentials(accessKey: right.accessKey, secretKey: "wrong-secret"), "SignatureDoesNotMatch"),
      (
        S3Credentials(accessKey: right.accessKey, secretKey: right.secretKey, sessionToken: "old-token"), "ExpiredToken"
      ),
    ] {
      let error = try await failure {
        _ = try await uploader(peer, signer: S3Signer(credentials, region: "us-east-1"))
      }
      #expect(error.side == .destination && error.recovery == .giveUp && error.message.contains(wanted), "\(error)")
      for secret in [credentials.secretKey, credentials.sessionToken ?? "wrong-secret"] {
        #expect(!error.message.contains(secret))
      }
    }
    let error = try await failure {
      _ = try await UploadDestination.s3(
        S3Address(bucket: "nowhere", endpoint: "http://127.0.0.1:\(peer.port)"),
        signer: S3Signer(right, region: "us-east-1"), over: transport)
    }
    #expect(error.side == .destination && error.message.contains("no such bucket"), "\(error)")
  }

  @Test func anExpiredTokenIsLookedForAnew() async throws {
    let old = S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s", sessionToken: "old")
    let new = S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s", sessionToken: "new")
    let peer = peer { options in
      options.credentials = new
      options.expiredToken = "old"
    }
    let signer = S3Signer(old, region: "us-east-1", renewal: { new })
    _ = try await uploader(peer, signer: signer).upload(PatternSource(length: 10), as: "a")
    #expect(peer.objects["a"] != nil)
  }

  @Test func namesThatS3DislikesAreRefusedHere() async throws {
    let peer = peer()
    let long = String(repeating: "a", count: 1025)
    for name in [BytePath("a/../b"), BytePath("./a"), BytePath(long), BytePath([0x61, 0xFF])] {
      let error = try await failure { _ = try await uploader(peer).upload(PatternSource(length: 10), as: name) }
      #expect(error.side == .file && error.recovery == .giveUp, "\(error)")
    }
    #expect(peer.objects.isEmpty)
  }

  @Test func whatIsTooLargeIsRefusedBeforeTheFirstByte() async throws {
    let peer = peer()
    let error = try await failure {
      _ = try await uploader(peer).upload(PatternSource(length: (5 << 40) + 1), as: "a")
    }
    #expect(error.side == .file && error.message.contains("at most"), "\(error)")
    // Of what just fits into memory, nobody knows whether it is all.
    let unknown = PatternSource(length: 10, access: .sequential, knowsLength: false)
    var small = try await uploader(peer)
    small.spool.memory = 10
    let other = try await failure { [small] in _ = try await small.upload(unknown, as: "a") }
    #expect(other.side == .file && other.message.contains("length"), "\(other)")
    #expect(peer.uploads.isEmpty && peer.objects.isEmpty)
    small.spool.memory = 11
    _ = try await small.upload(unknown, as: "a")
    #expect(peer.objects["a"]?.bytes == unknown.bytes(count: 10))
  }

  // MARK: Lists

  @Test func listsAreReadPageByPage() async throws {
    let peer = peer { options in
      options.page = 2
      options.smallestPart = 1
    }
    let signer = S3Signer(peer.options.credentials, region: "us-east-1")
    let dialect = S3Multipart(
      bucketPath: "/media/", signer: signer, options: .init(wholeUpTo: 0, partSize: 100, smallestPart: 1))
    let context = UploadContext(transport: transport, origin: peer.endpoint.origin)
    var ids: Set<String> = []
    for name in ["in/a b", "in/a b", "in/ä&+", "in/c", "out/d"] {
      let target = UploadTarget(
        endpoint: peer.endpoint, url: peer.endpoint.appending(pathBytes: Array(name.utf8)), path: BytePath(name),
        length: 450)
      guard case .parts(_, var session) = try await dialect.create(target, first: nil, context) else {
        throw CheckFailure("no upload was begun")
      }
      session.partSize = 100
      for part in PartPlan(length: 450, partSize: 100).numbered()! {
        let body = BlobSlice(PatternSource(length: 450), start: part.start, length: part.length)
        _ = try await dialect.send(part, body, to: session, context)
      }
      guard case .parts(let parts, _) = try await dialect.held(by: session, context) else {
        throw CheckFailure("no parts are listed")
      }
      #expect(parts.map(\.number) == [1, 2, 3, 4, 5] && parts.map(\.start) == [0, 100, 200, 300, 400])
      #expect(parts.map(\.held) == [100, 100, 100, 100, 50] && parts.allSatisfy { $0.digest != nil })
      ids.insert(session.state["id"]!)
    }
    let orphans = try await dialect.orphans(Array("in/".utf8), at: peer.endpoint, context)
    #expect(orphans.map { String(decoding: $0.key, as: UTF8.self) }.sorted() == ["in/a b", "in/a b", "in/c", "in/ä&+"])
    #expect(orphans.allSatisfy { $0.parts == 5 && $0.bytes == 450 && $0.begun == 1_795_302_000 })
    for orphan in orphans { try await dialect.delete(orphan, context) }
    #expect(peer.uploads.values.map(\.key) == ["out/d"])
  }

  @Test func countsOfPartsAreBounded() {
    let limits = S3Multipart(
      bucketPath: "/", signer: S3Signer(S3Credentials(accessKey: "", secretKey: ""), region: "r"), isAmazon: true
    ).limits
    for length: Int64 in [1, 100 << 30, (10_000 * (8 << 20)), (10_000 * (8 << 20)) + 1, limits.total!] {
      let plan = PartPlan(length: length, wanted: 8 << 20, limits: limits)
      let count = (length - 1) / plan.partSize! + 1
      #expect(count <= 10_000 && plan.partSize! % (1 << 20) == 0 && plan.partSize! <= 5 << 30, "\(length)")
    }
    #expect(PartPlan(length: 1 << 30, wanted: 1 << 20, limits: limits).partSize == 5 << 20)
  }
}
