import Testing

@testable import BlobClient

@testable import BlobHTTP

/// What libcurl says that it has sent, and what of it is the body.
@Suite struct SentBodyTests {
  @Test func aBodyOfKnownLengthIsWholeAtItsLastByte() {
    var body = SentBody()
    #expect(body.isWhole(of: 0) && !body.isWhole(of: 1) && !body.isWhole(of: nil))
    body.frame(10)
    body.hasSent(9, byLibcurlOf: 10)
    #expect(body.count == 9 && !body.isWhole(of: 10))
    body.hasSent(10, byLibcurlOf: 10)
    #expect(body.count == 10 && body.isWhole(of: 10))
  }

  /// `a`, 10 bytes, `186a0`, 100,000 bytes, and the last chunk.
  @Test(arguments: [false, true]) func aChunkedBodyIsWholeOnlyWithItsLastChunk(_ hasTrailers: Bool) {
    var body = SentBody(isChunked: true)
    body.frame(10)
    body.hasSent(15, byLibcurlOf: 10)
    #expect(body.count == 10 && !body.isWhole(of: nil) && !body.isWhole(of: 10))
    body.frame(100_000)
    body.hasSent(15 + 9 + 99_999, byLibcurlOf: 100_010)
    #expect(body.count == 100_009)
    body.hasSent(15 + 9 + 100_000, byLibcurlOf: 100_010)
    #expect(body.count == 100_010 && !body.isWhole(of: nil))
    let trailers: HTTPHeaders = hasTrailers ? ["X-End": "1"] : [:]
    body.end(trailers)
    let last: Int64 = hasTrailers ? 3 + 10 + 2 : 5
    for count in 0..<last {
      body.hasSent(15 + 9 + 100_000 + count, byLibcurlOf: 100_010)
      #expect(!body.isWhole(of: nil), "\(count) bytes of the last chunk")
    }
    body.hasSent(15 + 9 + 100_000 + last, byLibcurlOf: 100_010)
    #expect(body.isWhole(of: nil) && body.count == 100_010)
  }

  @Test(arguments: [1, 15, 16, 255, 256, 65_524, 65_536, 1 << 20 | 1]) func aSizeLineHasItsDigits(_ size: Int) {
    var body = SentBody(isChunked: true)
    body.frame(size)
    body.end([:])
    let all = size + String(size, radix: 16).utf8.count + 4 + 5
    body.hasSent(Int64(all - 1), byLibcurlOf: Int64(size))
    #expect(!body.isWhole(of: nil))
    body.hasSent(Int64(all), byLibcurlOf: Int64(size))
    #expect(body.isWhole(of: nil))
  }
}
