import BlobHTTP
import Blobs
import Testing

/// Secrets that a server repeats are recognized in each encoding that servers use.
@Suite struct RequestSecretsTests {
  private static let token = "s3kr+T0k/en\"a&b=="

  private func refusal(_ text: String, location: String? = nil) -> HTTPResponse {
    var response = HTTPResponse(head: HTTPHead(status: 403, headers: [:]), body: Array(text.utf8))
    response.head.headers["Location"] = location
    return response
  }

  @Test(arguments: [
    token, "s3kr%2BT0k%2Fen%22a%26b%3D%3D", "s3kr%2bT0k%2fen%22a%26b%3d%3d", #"s3kr+T0k\/en\"a\u0026b=="#,
    #"s3kr\u002bT0k\u002Fen\u0022a&b=="#, "s3kr+T0k/en&quot;a&amp;b==", "s3kr&#43;T0k&#x2F;en&#34;a&#x26;b&#61;=",
    "s3kr T0k/en\"a&b==", "s3kr%252BT0k%252Fen%2522a%2526b==", #"s3kr&#43;T0k\/en%22a\u0026b=="#,
    token.uppercased(), Base64.encode(Array(token.utf8)), Base64.encode(Array("\(token)\n".utf8)),
  ])
  func eachSpellingIsRecognized(_ spelling: String) {
    let words = RequestSecrets(values: [Self.token])
    #expect(words.isOne(in: "{\"error\": \"you said \(spelling)\"}".utf8))
    let response = words.removed(from: refusal("no: '\(spelling)'", location: "/x?t=\(spelling)"))
    #expect(response.body.isEmpty && response.headers["Location"] == nil)
  }

  @Test(arguments: [
    "%2Bs3kr", "s3kr+T0k/en\"a&c==", "%", "%2", "\\", "\\u", "\\u00", "\\ud83d", "&", "&#;", "&#x;", "&#xD800;",
  ])
  func otherTextIsLeftAsItIs(_ text: String) {
    let words = RequestSecrets(values: [Self.token])
    #expect(!words.isOne(in: text.utf8))
    #expect(words.removed(from: refusal(text)).body == Array(text.utf8))
  }

  /// The secret itself looks as if a part of it were encoded.
  @Test(arguments: ["abc%2Fdef", #"abc\u0026def"#, "abcdef%", "abc+def", "abc&amp;def", "tokens\u{1F600}x"])
  func secretsThatLookEncodedAreRecognized(_ secret: String) {
    let words = RequestSecrets(values: [secret])
    #expect(words.isOne(in: "<\(secret)41>".utf8))
    let encoded = secret.utf8.map { "%" + (String($0, radix: 16).count < 2 ? "0" : "") + String($0, radix: 16) }
      .joined()
    #expect(words.isOne(in: encoded.utf8))
  }

  @Test func astralCharactersOfJSONAreRecognized() {
    #expect(RequestSecrets(values: ["tokens\u{1F600}x"]).isOne(in: #"tokens\ud83d\ude00x"#.utf8))
  }

  @Test func secretsAreFoundInEveryEncoding() {
    let login = "Basic \(Base64.encode(Array("joe:pass/word+1".utf8)))"
    let words = RequestSecrets(["Authorization": login], query: "sig=ab%2Fcd%3D12&t=1")
    for text in ["pass%2fword%2b1", #"pass\/word 1"#, "ab/cd=12", "ab%2fcd%3d12", String(login.dropFirst(6))] {
      #expect(words.isOne(in: text.utf8), "\(text)")
    }
    #expect(!words.isOne(in: "joe".utf8) && !RequestSecrets().isOne(in: "anything".utf8))
  }

  /// Fields that are stored or shown are removed from every response; others are not inspected.
  @Test(arguments: [201, 403]) func fieldsThatAreKeptRepeatNone(_ status: Int) {
    var response = refusal("", location: "/x?t=\(Self.token)")
    response.head.status = status
    response.head.headers.add("etag", "\"\(Self.token)\"")
    response.head.headers.add("Content-Encoding", Self.token)
    response.head.headers.add("X-Amz-Bucket-Region", "eu-\(Self.token)")
    response.head.headers.add("Content-Length", "12")
    let headers = RequestSecrets(values: [Self.token]).removed(from: response).headers
    #expect(headers["Location"] == nil && headers["ETag"] == nil && headers["x-amz-bucket-region"] == nil)
    #expect(headers["Content-Encoding"] == "unknown" && headers["Content-Length"] == "12")
  }

  @Test func aSuccessKeepsItsWords() {
    var response = refusal(Self.token)
    response.head.status = 201
    #expect(RequestSecrets(values: [Self.token]).removed(from: response).body == Array(Self.token.utf8))
  }
}
