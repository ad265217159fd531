import BlobHTTP
import BlobTesting
import Blobs
import Foundation
import Testing

@testable import BlobUpload

/// Tests server-side encryption and object locks: which fields each request needs.
@Suite struct S3EncryptionTests: S3Fixture {
  let transport = Self.connections

  @Test(arguments: [1000, 17 << 20] as [Int64]) func lockedObjectsNameTheirChecksum(_ length: Int64) async throws {
    let peer = peer { $0.retainsByDefault = true }
    _ = try await uploader(peer).upload(PatternSource(length: length), as: "a")
    #expect(peer.objects["a"]?.bytes.count == Int(length))
  }

  @Test(arguments: [1000, 17 << 20] as [Int64]) func encryptionIsSaidWhereAnObjectBegins(_ length: Int64) async throws {
    let peer = peer()
    let how = S3Encryption(algorithm: "aws:kms", keyID: "arn:aws:kms:eu-west-1:1:key/2")
    let uploader = try await uploader(peer, .init(partSize: 5 << 20, encryption: how))
    let source = PatternSource(length: length)
    _ = try await uploader.upload(source, as: "a")
    try await uploader.verify(source, source.info, at: uploader.destination.target("a", length: length))
    let fields = try #require(peer.objects["a"]).fields
    #expect(fields["x-amz-server-side-encryption"] == "aws:kms")
    #expect(fields["x-amz-server-side-encryption-aws-kms-key-id"] == how.keyID)
  }

  /// Fields from `--header` are sent with every request.
  @Test(arguments: [1000, 17 << 20] as [Int64]) func fieldsOfTheUsersGoWhereTheyBelong(_ length: Int64) async throws {
    let peer = peer()
    var uploader = try await uploader(peer)
    uploader.destination.headers = [
      "X-Amz-Server-Side-Encryption": "AES256", "x-amz-object-lock-mode": "GOVERNANCE", "x-note": "1",
    ]
    let source = PatternSource(length: length)
    _ = try await uploader.upload(source, as: "a")
    try await uploader.verify(source, source.info, at: uploader.destination.target("a", length: length))
    #expect(peer.objects["a"]?.fields["x-amz-server-side-encryption"] == "AES256")
  }

  /// Over TLS a server that returns no checksums gets none, until it requires them.
  @Test func aServerThatWantsChecksumsLaterGetsThem() async throws {
    let uploadProtocol = S3Multipart(
      bucketPath: "/in/", signer: S3Signer(S3Credentials(accessKey: "k", secretKey: "s"), region: "us-east-1"))
    uploadProtocol.conditions.noteHeeded()
    let wanted = HTTPResponse.status(
      400,
      text: "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required"
        + " for Put Object requests with Object Lock parameters</Message></Error>")
    let script = Script { number, request throws(TransportError) in
      number > 0 && request.headers["x-amz-sdk-checksum-algorithm"] == nil ? wanted : .status(200, ["ETag": "\"1\""])
    }
    let uploader = Uploader(
      UploadDestination(
        endpoint: HTTPURL("https://media.example/in/")!, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits),
      transport: script)
    for name in ["a", "b", "c"] { _ = try await uploader.upload(PatternSource(length: 1000), as: BytePath(name)) }
    let named = script.requests.map { $0.headers["x-amz-sdk-checksum-algorithm"] }
    #expect(named == ["CRC32C", nil, "CRC32C", "CRC32C"])
  }

  @Test func theJournalRemembersTheEncryption() throws {
    var place = S3Location(S3Address(bucket: "media"), encryption: S3Encryption(algorithm: "aws:kms", keyID: "1"))
    #expect(try JSONDecoder().decode(S3Location.self, from: JSONEncoder().encode(place)) == place)
    // The format of earlier versions.
    place.encryption = nil
    let old = try JSONEncoder().encode(place)
    #expect(!String(decoding: old, as: UTF8.self).contains("encryption"))
    #expect(try JSONDecoder().decode(S3Location.self, from: old) == place)
  }
}
