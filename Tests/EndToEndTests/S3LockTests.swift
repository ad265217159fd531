import BlobTesting
import TestSupport
import Foundation
import Testing

extension EndToEnd {
  /// Buckets whose objects are locked by default, and server-side encryption, with the real binary.
  @Suite(.serialized) struct S3LockTests {
    let scratch = try! Scratch()

    @Test(.needs(.moto, .curl)) func motoTakesObjectsIntoALockedBucket() async throws {
      let peer = try await PeerServer.moto(in: scratch)
      try await curl("-X", "PUT", "-H", "x-amz-bucket-object-lock-enabled: true", "\(peer.url)/media")
      let rule =
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>"
        + "<Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>"
      try await curl("-X", "PUT", "--data", rule, "\(peer.url)/media?object-lock")
      try scratch.file("gallery/a.jpg", 50_000)
      try scratch.file("gallery/b.jpg", 600_000)
      try scratch.file("gallery/film.mov", 17 << 20)
      let push = try Command.fullbore(
        "push", scratch.path("gallery/"), "s3://media/in/", "--endpoint", peer.url, "--part-size", "5M", "--sse",
        "AES256",
        "--verify", in: scratch, environment: S3Peer.environment)
      #expect(try await push.wait() == .exited(0), "\(push.output)\(push.errors)")
      for name in ["a.jpg", "film.mov"] {
        let head = try await curl("-I", "\(peer.url)/media/in/\(name)")
        #expect(head.lowercased().contains("x-amz-server-side-encryption: aes256"), "\(head)")
      }
    }

    /// The push is stopped before the second file. The resume creates that object with the options of the push.
    @Test func resumeEncryptsAsThePushWas() async throws {
      let peer = S3Peer()
      try scratch.file("gallery/a.mov", 40 << 20)
      try scratch.file("gallery/b.mov", 40 << 20)
      let push = try Command.fullbore(
        "push", scratch.path("gallery/"), "s3://media/in/", "--endpoint", "http://127.0.0.1:\(peer.port)", "--sse",
        "aws:kms", "--sse-kms-key", "mine", "--bwlimit", "16M", "-j", "1", in: scratch, environment: S3Peer.environment)
      try await until("parts have arrived") {
        peer.uploads.values.contains { $0.parts.count > 1 } || push.end != nil ? true : nil
      }
      push.kill(SIGKILL)
      try await push.wait()
      #expect(peer.objects.isEmpty)
      let resume = try Command.fullbore("resume", in: scratch, environment: S3Peer.environment)
      #expect(try await resume.wait() == .exited(0), "\(resume.output)\(resume.errors)")
      #expect(peer.objects.count == 2)
      for (name, object) in peer.objects {
        #expect(object.fields["x-amz-server-side-encryption-aws-kms-key-id"] == "mine", "\(name)")
      }
    }

    /// Without this field moto treats the request as anonymous; it checks no signature.
    private var authorization: String {
      "Authorization: AWS4-HMAC-SHA256 Credential=k/20130524/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    }

    @discardableResult
    private func curl(_ arguments: String...) async throws -> String {
      let fields = ["-H", "Content-Type: application/xml", "-H", authorization]
      let curl = try Command(
        try #require(Peer.curl.path, Peer.curl.reason), ["-sSf"] + fields + arguments, in: scratch)
      #expect(try await curl.wait() == .exited(0), "\(curl.errors)")
      return curl.output
    }
  }
}
