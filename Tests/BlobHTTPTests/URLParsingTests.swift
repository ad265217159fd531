import BlobHTTP
import Testing

/// URLs according to RFC 3986 and the WHATWG URL Standard; where they differ, a comment names the one that applies.
@Suite struct URLParsingTests {
  /// RFC 3986 §5.4.1 and §5.4.2, with `http://a/b/c/d;p?q` as the base. Fragments are left out.
  @Test(arguments: [
    ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
    ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
    ("g#s", "http://a/b/c/g"), ("g?y#s", "http://a/b/c/g?y"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
    ("g;x?y#s", "http://a/b/c/g;x?y"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
    ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
    ("../../", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"),
    ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
    ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"),
    ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
    ("g;x=1/../y", "http://a/b/c/y"), ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
    ("g#s/../x", "http://a/b/c/g"),
  ])
  func theReferencesOfRFC3986(_ reference: String, _ expected: String) throws {
    let base = try #require(HTTPURL("http://a/b/c/d;p?q"))
    #expect(base.resolve(reference)?.text == expected)
  }

  /// RFC 3986 resolves the first two to other schemes; the last is the backward-compatible form, which must not be
  /// used.
  @Test(arguments: ["g:h", "mailto:a@b", "http:g"])
  func aReferenceToAnotherSchemeIsRefused(_ reference: String) throws {
    let base = try #require(HTTPURL("http://a/b/c/d;p?q"))
    #expect(base.resolve(reference) == nil)
  }

  /// Hosts that end in a number are IPv4 addresses. WHATWG URL, "ends in a number checker" and "IPv4 parser".
  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"),
    ("0x7f000001", "127.0.0.1"), ("0x7F.1", "127.0.0.1"), ("0177.0.0.01", "127.0.0.1"), ("0", "0.0.0.0"),
    ("0x", "0.0.0.0"), ("1.2.3.4.", "1.2.3.4"), ("1.2", "1.0.0.2"), ("4294967295", "255.255.255.255"),
    ("%31%32%37.0.0.1", "127.0.0.1"), ("0x.0x.0", "0.0.0.0"),
  ])
  func addressesOfFourBytes(_ host: String, _ expected: String) {
    #expect(HTTPURL("http://\(host)/")?.host == expected)
  }

  @Test(arguments: [
    "256.1.1.1", "1.2.3.4.5", "4294967296", "1.2.3.256", "1.2.65536", "1.16777216", "08", "1.2.3.09", "foo.0x4",
    "foo.09", "1.2.0xg.4.0", "0xffffffff1", "1..2",
  ])
  func aHostThatEndsInANumberAndIsNoAddressIsRefused(_ host: String) { #expect(HTTPURL("http://\(host)/") == nil) }

  @Test(arguments: [
    ("[::1]", "[::1]"), ("[0:0:0:0:0:0:0:1]", "[::1]"), ("[2001:DB8::A]", "[2001:db8::a]"),
    ("[1:0::]", "[1::]"), ("[::127.0.0.1]", "[::127.0.0.1]"),
  ])
  func addressesOfSixteenBytes(_ host: String, _ expected: String) {
    #expect(HTTPURL("http://\(host)/")?.host == expected)
  }

  @Test(arguments: [
    "[]", "[:]", "[1::2::3]", "[::1", "::1]", "[::1%25eth0]", "[::1%eth0]", "[12345::]", "[1:2:3:4:5:6:7]", "[::1]x",
    "[www.example.org]", "[::1.2.3]", "[v1.a]",
  ])
  func bracketsWithoutAnIPv6AddressAreRefused(_ host: String) { #expect(HTTPURL("http://\(host)/") == nil) }

  @Test(arguments: [
    "a b", "a\tb", "a\u{7F}b", "a<b", "a>b", "a^b", "a|b", "a\\b", "a@b", "a%00b", "a%2Fb", "a%3Ab", "a%40b", "a%zzb",
    "a%", "a%5Bb", "a`b", "a{b}", "a\"b", "%FF", "",
  ])
  func noHostHasTheseCharacters(_ host: String) { #expect(HTTPURL("http://\(host)/") == nil) }

  @Test(arguments: [
    ("http://a:80/", 80, "http://a:80/"), ("http://a:/", 80, "http://a/"), ("https://a", 443, "https://a/"),
    ("http://a:0080/", 80, "http://a:80/"), ("http://a:65535", 65535, "http://a:65535/"),
    ("http://[::1]:81", 81, "http://[::1]:81/"), ("http://[::1]", 80, "http://[::1]/"),
  ])
  func portsAreRead(_ text: String, _ port: Int, _ canonical: String) {
    let url = HTTPURL(text)
    #expect(url?.port == port && url?.text == canonical)
  }

  @Test(arguments: [":0", ":65536", ":99999999999999999999", ":+1", ":-1", ":1a", ":a", "::1", ":8 0"])
  func anInvalidPortIsRefused(_ port: String) { #expect(HTTPURL("http://a\(port)/") == nil) }

  @Test(
    arguments: [
      ("http://a?q", "/", "q"), ("http://a#f", "/", nil), ("http://a/?", "/", nil), ("http://a?", "/", nil),
      ("http://a/b?c?d", "/b", "c?d"), ("http://a/%2e%2e/b/%2E/c", "/b/c", nil), ("http://a/b/.%2E/c", "/c", nil),
      ("http://a//b//c", "//b//c", nil), ("http://a/..", "/", nil), ("http://a/b/..//c", "//c", nil),
      ("http://a/ä?ö", "/%C3%A4", "%C3%B6"), ("http://a/%zz%", "/%zz%", nil), ("http://a/b?#c", "/b", nil),
      ("http://a/...", "/...", nil), ("http://a/%2e%2e%2e", "/%2e%2e%2e", nil),
    ] as [(String, String, String?)])
  func pathAndQueryAreRead(_ text: String, _ path: String, _ query: String?) throws {
    let url = try #require(HTTPURL(text))
    #expect(url.path == path && url.query == query)
    // Parsing the text of a parsed URL gives the same URL.
    #expect(HTTPURL(url.text) == url)
  }

  @Test(arguments: [
    "//a/b", "a/b", "http:/a", "http:///a", "http:a", "http:", "http//a", ":", "1http://a/", " http://a/",
  ])
  func aURLWithoutSchemeOrHostIsRefused(_ text: String) { #expect(HTTPURL(text) == nil) }
}
