import BlobCrypto
import BlobHTTP
import BlobTesting
import Blobs
import Synchronization
import Testing

@testable import BlobUpload

/// Tests the checksums and signatures that protect the bytes of a request.
@Suite struct S3BodyTests: S3Fixture {
  let transport = Self.connections

  /// The body has the `aws-chunked` framing, so the source is read once.
  @Test func aChecksumMayFollowTheBody() async throws {
    let peer = peer()
    let signer = S3Signer(peer.options.credentials, region: "us-east-1")
    for length: Int64 in [1, 1000, 1_000_000] {
      let pattern = PatternSource(length: length)
      let body = try await S3Body.make(
        BlobSlice(pattern, length: length, validator: pattern.info.validator), .crc32c, .trailer, signs: false)
      #expect(body.checksum == nil)
      var request = HTTPRequest("PUT", try #require(peer.endpoint.resolve("\(length)")), body.headers)
      signer.sign(&request)
      let response = try await transport.send(request, body: body.slice, Exchange())
      #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
      #expect(peer.objects["\(length)"]?.bytes == pattern.bytes(count: Int(length)))
      #expect(body.checksum == Digest.value(of: pattern.bytes(count: Int(length)), .crc32c))
    }
    // One bit of the body differs from the checksum.
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
    #expect(S3ErrorResponse(response)?.code == "BadDigest")
  }

  /// Over TLS, for a server that ignores checksums: the body is not read before it is sent.
  @Test func aChecksumNoOneLooksAtIsWorkedOutInPassing() async throws {
    for length: Int64 in [1, 7, 100_000] {
      let source = CountingSource(PatternSource(length: length))
      let body = try await S3Body.make(
        BlobSlice(source, length: length), .crc32c, .none, signs: false)
      #expect(source.count == 0 && body.checksum == nil && body.slice.length == length)
      #expect(body.headers["x-amz-content-sha256"] == S3Signature.unsignedPayload)
      let bytes = try read(try body.slice.open(Cancellation()))
      #expect(bytes == PatternSource(length: length).bytes(count: Int(length)))
      #expect(body.checksum == Digest.value(of: bytes, .crc32c))
    }
    let acquaintance = S3ServerFacts()
    #expect(acquaintance.heedsChecksums == nil)
    acquaintance.note(echo: nil)
    #expect(acquaintance.heedsChecksums == false)
  }

  /// Each body would be read twice, perhaps in vain: only a few are, until the first response shows whether it is
  /// needed.
  @Test func onlyAFewBodiesHaveChecksumsBeforeTheFirstResponse() async {
    let acquaintance = S3ServerFacts()
    let told = Gate(0)
    let seen = await withTaskGroup(of: Bool?.self) { group in
      for _ in 0..<5 {
        group.addTask {
          await acquaintance.asking(with: S3ServerFacts.mostAsking / 2) {
            let heeds = acquaintance.heedsChecksums
            if heeds == nil { await told.pass {} }
            return heeds
          }
        }
      }
      while acquaintance.waiting < 3 { await Task.yield() }
      acquaintance.note(echo: nil)
      told.widen(to: 5)
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(seen.filter { $0 == nil }.count == 2 && seen.filter { $0 == false }.count == 3)
  }

  /// A body that is larger than the limit for concurrent bodies is sent alone. If its response shows nothing, the next
  /// body finds out.
  @Test func aBodyThatWasRefusedLetsTheNextOneAsk() async {
    let acquaintance = S3ServerFacts()
    let inside = Inside()
    await withTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          await acquaintance.asking(with: 2 * S3ServerFacts.mostAsking) {
            defer { inside.count.subtract(1, ordering: .relaxed) }
            let count = inside.count.add(1, ordering: .relaxed).newValue
            await Task.yield()
            return count
          }
        }
      }
      for await count in group { #expect(count == 1) }
    }
    #expect(acquaintance.heedsChecksums == nil && acquaintance.waiting == 0)
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
}

private final class Inside: Sendable {
  let count = Atomic(0)
}
