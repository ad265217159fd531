import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// Tests with a strict server in memory; `ProtocolTests` has the checks for all protocols.
@Suite struct S3Tests: S3Fixture {
  let transport = Self.connections

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
    // Two more requests query whether the bucket exists, and whether the name is free.
    #expect(peer.requests.count == 3)
  }

  @Test func aLargeObjectGoesInPartsAtOnce() async throws {
    let peer = peer()
    let pattern = PatternSource(length: (17 << 20) + 1)
    let progress = UploadProgress()
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

  /// Like moto, for an object of several parts. The ETag decides, or the object itself if its parts had another size.
  @Test(arguments: [false, true]) func aWrongChecksumOfTheServerDoesNotProveOtherBytes(_ hasOtherTag: Bool)
    async throws
  {
    let peer = peer()
    let pattern = PatternSource(length: 17 << 20)
    let uploader = try await uploader(peer)
    _ = try await uploader.upload(pattern, as: "a")
    peer.change { state in
      state.objects["a"]!.checksums = ["crc32c": "AAAAAA=="]
      if hasOtherTag { state.objects["a"]!.tag = "\"0123456789abcdef0123456789abcdef-2\"" }
    }
    let result = try await uploader.upload(pattern, as: "a")
    #expect(result?.isCompared == true && peer.requests.filter { $0.hasPrefix("POST") }.count == 2, "\(peer.requests)")
    let target = uploader.destination.target("a", length: pattern.length)
    let uploadProtocol = try #require(uploader.destination.uploadProtocol as? S3Multipart)
    let whole = BlobSlice(pattern, length: pattern.length)
    #expect(try await uploadProtocol.hasSameBytes(as: whole, target, uploader.context()) == true)
    let read = peer.requests.filter { $0.hasPrefix("GET") && !$0.contains("?") }
    #expect(read.count == (hasOtherTag ? 2 : 0), "\(read)")
    let others = BlobSlice(PatternSource(length: 17 << 20, seed: 2), length: pattern.length)
    #expect(try await uploadProtocol.hasSameBytes(as: others, target, uploader.context()) == false)
  }

  /// The response to a completion is lost, and the server reports a wrong checksum of the object.
  @Test func aCompletedObjectIsRecognizedByItsETag() throws {
    let tag = "0123456789abcdef0123456789abcdef-2"
    let upload = try S3Upload(
      UploadSession(state: [
        "url": "http://127.0.0.1/a", "id": "1", "length": "10", "checksum": "crc32c", "value": "BBBBBB==", "etag": tag,
      ]))
    func object(_ tag: String, _ sum: String) -> S3Object {
      S3Object(["Content-Length": "10", "ETag": "\"\(tag)\"", "x-amz-checksum-crc32c": sum])
    }
    #expect(upload.made(object(tag, "AAAAAA==")) && upload.made(object("other", "BBBBBB==")))
    #expect(!upload.made(object("other", "AAAAAA==")))
  }

  @Test func theSecondWriterDoesNotOverwriteAndLeavesNothing() async throws {
    let pattern = PatternSource(length: 17 << 20)
    let other = S3PeerObject(bytes: [1], tag: "\"x\"", fields: [:], checksums: [:])
    let made = Monitor<S3Peer?>(nil)
    let peer = peer { options in
      options.refuse = { _, request in
        // The other object appears just before the last request.
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
