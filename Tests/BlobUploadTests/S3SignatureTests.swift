import BlobCrypto
import BlobHTTP
import Blobs
import Testing

@testable import BlobUpload

/// The examples of Amazon's documentation.
@Suite struct S3SignatureTests {
  static let credentials = S3Credentials(
    accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
  private let signature = S3Signature(timestamp: "20130524T000000Z", region: "us-east-1")

  private func sign(
    _ method: String, _ path: String, _ query: String? = nil, payload: String, _ fields: [(name: String, value: String)]
  ) -> String {
    let canonical = S3Signature.canonicalRequest(method, path: path, query: query, fields: fields, payload: payload)
    return S3Signature.sign(
      signature.stringToSign(canonical), key: signature.key(Self.credentials.secretKey))
  }

  /// Many requests find out at the same time that their token has expired, or that the clock is wrong.
  @Test func credentialsRenewedByOneRequestAreUsedByAll() {
    let new = S3Credentials(accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "s", sessionToken: "new")
    let signer = S3Signer(Self.credentials, region: "us-east-1", renewal: { new }, clock: { 1_000_000 })
    let version = signer.version
    #expect(signer.renew(since: version) && signer.renew(since: version))
    #expect(!signer.renew(since: signer.version))
    let before = signer.version
    #expect(signer.adjust(to: 2_000_000, since: before) && signer.adjust(to: 2_000_000, since: before))
    #expect(!signer.adjust(to: 2_000_000, since: signer.version))
  }

  @Test func theSigningKeyMatchesAmazonsExample() {
    #expect(
      Digest.hex(signature.key(Self.credentials.secretKey))
        == "dbb893acc010964918f1fd433add87c70e8b0db6be30c1fbeafefa5ec6ba8378")
  }

  @Test func gettingAnObject() {
    let value = sign(
      "GET", "/test.txt", payload: S3Signature.emptyPayload,
      [
        ("host", "examplebucket.s3.amazonaws.com"), ("range", "bytes=0-9"),
        ("x-amz-content-sha256", S3Signature.emptyPayload), ("x-amz-date", "20130524T000000Z"),
      ])
    #expect(value == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
  }

  @Test func puttingAnObject() {
    let payload = Digest.hex(of: Array("Welcome to Amazon S3.".utf8), .sha256)
    let value = sign(
      "PUT", "/test%24file.text", payload: payload,
      [
        ("date", "Fri, 24 May 2013 00:00:00 GMT"), ("host", "examplebucket.s3.amazonaws.com"),
        ("x-amz-content-sha256", payload), ("x-amz-date", "20130524T000000Z"),
        ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
      ])
    #expect(value == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
  }

  @Test func aPresignedURL() {
    let query =
      "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
      + "&X-Amz-Date=20130524T000000Z&X-Amz-SignedHeaders=host&X-Amz-Expires=86400"
    let value = sign(
      "GET", "/test.txt", query, payload: S3Signature.unsignedPayload, [("host", "examplebucket.s3.amazonaws.com")])
    #expect(value == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
  }

  @Test(arguments: [
    ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"),
    ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"),
  ])
  func theSeedOfAChunkedBody(_ payload: String, _ wanted: String) {
    var fields = [
      (name: "content-encoding", value: "aws-chunked"), ("host", "s3.amazonaws.com"), ("x-amz-content-sha256", payload),
      ("x-amz-date", "20130524T000000Z"), ("x-amz-decoded-content-length", "66560"),
      ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
    ]
    fields.append(
      payload.hasSuffix("TRAILER") ? ("x-amz-trailer", "x-amz-checksum-crc32c") : ("content-length", "66824"))
    #expect(sign("PUT", "/examplebucket/chunkObject.txt", payload: payload, fields) == wanted)
  }

  @Test func aQueryIsSortedAndEmptyValuesAreKept() {
    let canonical = S3Signature.canonicalRequest(
      "GET", path: "/b/", query: "uploads&b=2&a=2&a=1&prefix=x%2Fy", fields: [("host", "h")], payload: "p")
    #expect(canonical == "GET\n/b/\na=1&a=2&b=2&prefix=x%2Fy&uploads=\nhost:h\n\nhost\np")
  }

  /// Checks the complete field, as it is sent.
  @Test func aRequestIsSigned() throws {
    let signer = S3Signer(Self.credentials, region: "us-east-1", clock: { 1_369_353_600 })
    var request = HTTPRequest("GET", try #require(HTTPURL("https://examplebucket.s3.amazonaws.com/?lifecycle")))
    signer.sign(&request)
    #expect(request.headers["x-amz-date"] == "20130524T000000Z")
    #expect(
      request.headers["Authorization"]
        == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        + "SignedHeaders=host;x-amz-content-sha256;x-amz-date,"
        + "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
  }

  @Test func nothingSecretShowsInADescription() {
    for text in ["\(Self.credentials)", String(reflecting: Self.credentials)] {
      #expect(!text.contains("EXAMPLE"), "\(text)")
    }
    var dumped = ""
    dump(Self.credentials, to: &dumped)
    #expect(!dumped.contains("EXAMPLE"), "\(dumped)")
  }
}
