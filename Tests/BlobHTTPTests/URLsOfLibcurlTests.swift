import BlobHTTP
import CCurl
import Testing

/// Compares Fullbore's URL parser with libcurl's, which connects to the URLs that Fullbore has parsed. Both must find
/// the same host and port, or one of them must reject the URL.
@Suite struct URLsOfLibcurlTests {
  private static let pieces = [
    "http://", "https://", "HTTP://", "//", "/", "a", "B.c", "127.1", "0x7f.1", "[::1]", "[", "]", ":", "80", "0", "@",
    "u", "?", "#", "..", ".", "%2e", "%41", "%", "\\", " ", "ä", "=", ";", "~", "-", "_", "+", "&", "x", "%00", "%2f",
  ]

  @Test func aURLThatLibcurlAcceptsTooHasTheSameParts() {
    var random = SplitMix(state: 7)
    var both = 0
    for _ in 0..<40_000 {
      let start = ["http://", "https://", ""].randomElement(using: &random)!
      let text = (0..<Int.random(in: 1...7, using: &random)).reduce(into: start) { text, _ in
        text += Self.pieces.randomElement(using: &random)!
      }
      guard let ours = HTTPURL(text), let theirs = Seen(text) else { continue }
      both += 1
      #expect(ours.host == canonical(theirs.host), "host of \(text)")
      #expect(ours.port == theirs.port, "port of \(text)")
      #expect(ours.query ?? "" == encoded(theirs.query), "query of \(text)")
      // libcurl 7.88 does not decode percent-encoded dots.
      if !text.lowercased().contains("%2e") { #expect(ours.path == encoded(theirs.path), "path of \(text)") }
    }
    #expect(both > 5_000)
  }

  @Test func theURLThatLibcurlDialsHasTheSameParts() {
    var random = SplitMix(state: 8)
    for _ in 0..<40_000 {
      let text = (0..<Int.random(in: 1...7, using: &random)).reduce(into: "http://") { text, _ in
        text += Self.pieces.randomElement(using: &random)!
      }
      // Fullbore writes the URL that libcurl dials: scheme, host and port.
      guard let ours = HTTPURL(text) else { continue }
      let theirs = Seen("\(ours.scheme)://\(ours.host):\(ours.port)/")
      #expect(
        theirs?.host.lowercased() == ours.host && theirs?.port == ours.port, "\(text) is dialled as \(ours.origin)")
    }
  }

  /// libcurl leaves bytes outside ASCII as they are, unless it is told otherwise.
  private func encoded(_ text: String) -> String {
    text.unicodeScalars.map { $0.isASCII ? String($0) : HTTPURL.encode(String($0).utf8) }.joined()
  }

  /// libcurl 7.88 treats `127.1.` and `0x` as names, and the resolver parses them as addresses.
  private func canonical(_ host: String) -> String? { HTTPURL("http://\(host)/")?.host }
}

/// The parts that libcurl finds.
private struct Seen {
  let host: String
  let port: Int
  let path: String
  let query: String

  init?(_ text: String) {
    guard let handle = curl_url() else { return nil }
    defer { curl_url_cleanup(handle) }
    func part(_ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
      var found: UnsafeMutablePointer<CChar>?
      guard curl_url_get(handle, part, &found, flags) == CURLUE_OK, let found else { return nil }
      defer { curl_free(found) }
      return String(cString: found)
    }
    guard curl_url_set(handle, CURLUPART_URL, text, 0) == CURLUE_OK, let host = part(CURLUPART_HOST),
      let port = part(CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap({ Int($0) }),
      let path = part(CURLUPART_PATH)
    else { return nil }
    (self.host, self.port, self.path) = (host, port, path)
    query = part(CURLUPART_QUERY) ?? ""
  }
}

/// Returns the same numbers in every run.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
