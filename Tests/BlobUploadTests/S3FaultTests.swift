import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// Tests failures of an S3 server.
@Suite struct S3FaultTests: S3Fixture {
  let transport = Self.connections

  /// Data that the server loses before the completion.
  enum Loss: CaseIterable { case part, tag, bytes }

  @Test(arguments: Loss.allCases) func aPartThatIsNotWhatItWasIsSentAgain(_ loss: Loss) async throws {
    let pattern = PatternSource(length: 17 << 20)
    let made = Monitor<S3Peer?>(nil)
    let times = Monitor(0)
    let peer = peer { options in
      options.refuse = { _, request in
        guard request.method == "POST", let id = request.query("uploadId") else { return nil }
        if times.update({
          $0 += 1; return $0
        }) == 1 {
          made.update { $0 }?.change { state in
            switch loss {
            case .part: state.uploads[id]!.parts[2] = nil
            case .tag: state.uploads[id]!.parts[2]!.tag = "\"another\""
            case .bytes: state.uploads[id]!.parts[2] = S3PeerUpload(key: "a", bytes: [1]).parts[1]
            }
          }
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

  @Test func aServerThatHasOtherBytesIsNotBelieved() async throws {
    let taken = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nx-amz-checksum-crc32c: AAAAAA==\r\nContent-Length: 0\r\n\r\n"
    let peer = ScriptedPeer(
      [.readRequest, .send(Self.listed)] + Array(repeating: [.readRequest, .send(taken)], count: 10).flatMap { $0 })
    let uploader = try await uploader(at: peer.port, retries: 1)
    (uploader.destination.uploadProtocol as? S3Multipart)?.conditions.noteHeeded()
    let error = try await failure { _ = try await uploader.upload(PatternSource(length: 10), as: "a") }
    #expect(error.side == .file && error.message.contains("the server has other bytes"), "\(error)")
    #expect(peer.seen.heads.filter { $0.hasPrefix("PUT") }.count == 2)
  }

  @Test func theErrorNamesACompletionWithoutAResponse() async throws {
    let peer = peer { options in
      options.refuse = { _, request in
        request.method == "POST" && request.query("uploadId") != nil ? (200, "") : nil
      }
    }
    let error = try await failure {
      _ = try await uploader(peer, retries: 1).upload(PatternSource(length: 17 << 20), as: "a")
    }
    #expect(error.message.contains("without a CompleteMultipartUploadResult"), "\(error)")
  }

  @Test func theErrorNamesAPageInPlaceOfAListOfUploads() async throws {
    let peer = ScriptedPeer([.readRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")])
    let endpoint = try #require(HTTPURL("http://127.0.0.1:\(peer.port)/media/"))
    let uploadProtocol = S3Multipart(
      bucketPath: "/media/", signer: S3Signer(S3Credentials(accessKey: "k", secretKey: "s"), region: "us-east-1"))
    let error = try await failure {
      _ = try await uploadProtocol.allOrphans(
        [], at: endpoint, UploadContext(transport: transport, endpoint: endpoint, traits: uploadProtocol.traits))
    }
    #expect(error.side == .destination && error.message.contains("without a list of uploads"), "\(error)")
  }

  /// A response 200 may be sent before the server knows the result.
  @Test(arguments: ["InternalError", "SlowDown"]) func a200WithAnErrorInItsBodyIsAFailure(_ code: String) async throws {
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
    // Only the first request was sent twice.
    #expect(peer.requests.filter { $0.contains("list-type") }.count == 2)
  }

  /// The server's date is already our own, so retries would never end.
  @Test func theErrorNamesAClockThatTheServersDateDoesNotCorrect() async throws {
    let peer = peer { $0.refuse = { number, _ in number == 0 ? nil : (403, "RequestTimeTooSkewed") } }
    let error = try await failure { _ = try await uploader(peer).upload(PatternSource(length: 10), as: "a") }
    #expect(error.side == .destination && error.message.contains("the clock of this machine"), "\(error)")
    #expect(peer.requests.count <= 3, "\(peer.requests)")
  }

  /// The region is found in a field or in the body, with any status: a bucket has only one region.
  @Test(arguments: [
    ("301 Moved", "x-amz-bucket-region: eu-west-1\r\n", "<Error><Code>PermanentRedirect</Code></Error>"),
    ("307 There", "x-amz-bucket-region: eu-west-1\r\n", "<Error><Code>TemporaryRedirect</Code></Error>"),
    ("301 Moved", "x-amz-bucket-region: eu-west-1\r\nLocation: http://elsewhere.example/\r\n", ""),
    ("400 No", "", "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"),
    ("403 No", "x-amz-bucket-region: eu-west-1\r\n", "<Error><Code>AccessDenied</Code></Error>"),
  ])
  func theRegionIsReadFromEachFormOfRedirect(_ status: String, _ fields: String, _ text: String) async throws {
    let elsewhere = "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(text.utf8.count)\r\n\r\n\(text)"
    let peer = ScriptedPeer([.readRequest, .send(elsewhere), .readRequest, .send(Self.listed)])
    let signer = S3Signer(S3Credentials(accessKey: "k", secretKey: "s"), region: "us-east-1")
    _ = try await uploader(at: peer.port, signer)
    #expect(signer.region == "eu-west-1")
    #expect(peer.seen.heads.count == 2 && peer.seen.heads.last!.contains("/eu-west-1/s3/aws4_request"))
  }

  @Test(arguments: ["evil.example/", "", "us-east-1"]) func aRedirectToAnInvalidRegionEndsWithAnError(_ region: String)
    async throws
  {
    let text = "<Error><Code>PermanentRedirect</Code><Message>elsewhere</Message></Error>"
    let answer = "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: \(region)\r\nContent-Length: \(text.count)\r\n\r\n\(text)"
    let peer = ScriptedPeer(Array(repeating: [.readRequest, .send(answer)], count: 5).flatMap { $0 })
    let error = try await failure { _ = try await uploader(at: peer.port) }
    #expect(error.side == .destination && error.message.contains("PermanentRedirect"), "\(error)")
    #expect(peer.seen.heads.count == 1)
  }

  @Test func endlessRedirectsBetweenRegionsEndTheUpload() async throws {
    let answers = (1...9).flatMap { number -> [ScriptedPeer.Step] in
      let head = "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: r-\(number)\r\nContent-Length: 0\r\n\r\n"
      return [.readRequest, .send(head)]
    }
    let peer = ScriptedPeer(answers)
    let error = try await failure { _ = try await uploader(at: peer.port) }
    #expect(error.side == .destination && error.status == 301, "\(error)")
    #expect(peer.seen.heads.count == 3)
  }

  private static let listed = "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n<ListBucketResult/>"

  /// An uploader for a server that sends scripted responses.
  private func uploader(at port: Int, _ signer: S3Signer? = nil, retries: Int = 3) async throws -> Uploader {
    let destination = try await UploadDestination.s3(
      S3Address(bucket: "media", endpoint: "http://127.0.0.1:\(port)"),
      signer: signer ?? S3Signer(S3Credentials(accessKey: "k", secretKey: "s"), region: "us-east-1"), over: transport)
    var uploader = Uploader(destination, transport: transport, retry: RetryPolicy(retries: retries))
    uploader.clock = LeapingClock()
    return uploader
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
    let (signer, wanted) = expired()
    let peer = peer(wanted)
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

  @Test func aFileAboveTheLimitOfS3IsRefusedBeforeTheFirstByte() async throws {
    let peer = peer()
    let error = try await failure {
      _ = try await uploader(peer).upload(PatternSource(length: (5 << 40) + 1), as: "a")
    }
    #expect(error.side == .file && error.message.contains("at most"), "\(error)")
    // A source that exactly fills the memory may have more bytes.
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
}
