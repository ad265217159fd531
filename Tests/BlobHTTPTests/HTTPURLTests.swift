import BlobHTTP
import Testing

@Suite struct HTTPURLTests {
  @Test func aURLIsSplitIntoItsParts() throws {
    let url = try #require(HTTPURL("HTTPS://Example.ORG/a%20b/c?k=v#part"))
    #expect(url.scheme == "https" && url.host == "example.org" && url.port == 443)
    #expect(url.path == "/a%20b/c" && url.query == "k=v")
    #expect(!url.text.contains("#"))
    #expect(url.origin == "https://example.org:443")
    #expect(url.description.hasSuffix("/a%20b/c"))
  }

  @Test func anIPv6HostKeepsItsBrackets() throws {
    let url = try #require(HTTPURL("http://[::1]:8080/a"))
    #expect(url.host == "[::1]" && url.port == 8080)
  }

  @Test(arguments: [
    ("https://a/x%2fy/;p=1?q=%C3%BC&r=/?", "https://a/x%2fy/;p=1?q=%C3%BC&r=/?"),
    ("https://a/B\u{fc}cher/a%20b", "https://a/B%C3%BCcher/a%20b"),
    ("https://A:443/x|y[1]", "https://A:443/x%7Cy%5B1%5D"),
    ("https://a/100%/%zz%4", "https://a/100%25/%25zz%254"),
    ("https://a//evil.example/\u{fc}", "https://a//evil.example/%C3%BC"),
    ("https://a/?q=\u{fc}|", "https://a/?q=%C3%BC%7C"),
  ])
  func theStrictFormNamesTheSame(text: String, strict: String) throws {
    let url = try #require(HTTPURL(text))
    #expect(url.strict.text == strict)
    #expect(url.strict.origin == url.origin && url.strict.strict == url.strict)
  }

  @Test(arguments: [
    "", "a", "/a", "ftp://a/b", "file:///etc/passwd", "http://", "http://user@a/", "http://user:pass@a/", "http://a b/",
    "http://a:99999/", "http://a/\0b", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1",
    "http://[zz]/",
  ])
  func textThatIsNoHTTPURLIsRefused(_ text: String) { #expect(HTTPURL(text) == nil) }

  @Test(arguments: [
    ("http://a/b/c?q", "d", "http://a/b/d"), ("http://a/b/c", "/d", "http://a/d"),
    ("http://a/b/", "d/e", "http://a/b/d/e"),
    ("http://a/b/c", "../d", "http://a/d"), ("http://a/b/c", "?x=1", "http://a/b/c?x=1"),
    ("http://a/b?q", "http://a/d/e.f~g", "http://a/d/e.f~g"), ("http://a/b", "http://a.b/c", "http://a.b/c"),
    ("http://a:81/b", "http://a:81/c", "http://a:81/c"), ("http://a/b", "http://a:81/c", "http://a:81/c"),
    ("http://a/b", "/c/../d", "http://a/d"), ("http://a/b", "/c/./d", "http://a/c/d"), ("http://a/b", "/", "http://a/"),
    ("http://a/p/", ".up/1", "http://a/p/.up/1"), ("http://a/p/b/c", "../.up/1", "http://a/p/.up/1"),
    ("http://a/p/b/c/?q", "../../.up/1", "http://a/p/.up/1"), ("http://a/p/b", "../../../.up/1", "http://a/.up/1"),
    ("http://a/b", "/.up/1", "http://a/.up/1"), ("http://a/b", "http://a/.up/.1", "http://a/.up/.1"),
    ("http://a/b", "/c/..d/e", "http://a/c/..d/e"), ("http://a/b", "/c/.", "http://a/c/"),
    ("http://a/b", "/.", "http://a/"), ("http://a/b", "/..", "http://a/"), ("http://a/b", "/c/..", "http://a/"),
    ("http://a/b", "/c/.../d", "http://a/c/.../d"),
    ("http://a/b/c", "https://z/y", "https://z/y"), ("https://a/b", "//z/y", "https://z/y"),
  ])
  func aLocationIsResolved(_ base: String, _ reference: String, _ expected: String) {
    #expect(HTTPURL(base)?.resolve(reference)?.text == expected)
  }

  @Test func aLocationWithAPasswordIsRefused() {
    #expect(HTTPURL("http://a/")?.resolve("http://u:p@a/") == nil)
  }

  @Test func originsDifferBySchemeHostAndPort() {
    func origin(_ text: String) -> String? { HTTPURL(text)?.origin }
    #expect(origin("http://a/x") == origin("http://A:80/y?z"))
    #expect(origin("http://a/") != origin("https://a/"))
    #expect(origin("http://a/") != origin("http://a:81/"))
    #expect(origin("http://a/") != origin("http://b/"))
  }

  @Test(arguments: [
    ("HTTP://Host.Example/a", "http://host.example/a"), ("http://a:80/", "http://a/"), ("https://a:443/", "https://a/"),
    ("http://a:443/", "http://a:443/"), ("http://a:0081/", "http://a:81/"), ("http://a", "http://a/"),
    ("http://a/%7e%62%2D%5F%2e/", "http://a/~b-_./"), ("http://a/%c3%bC/%2f", "http://a/%C3%BC/%2F"),
    ("http://a/(%28;%3b", "http://a/(%28;%3B"), ("http://a/%7%zz%", "http://a/%7%zz%"),
    ("http://A/%7e?%7e&s=%c3", "http://a/~?%7e&s=%c3"), ("http://[::0001]/", "http://[::1]/"),
  ])
  func urlsThatDifferInHowTheyAreWrittenAreNormalized(_ text: String, _ normal: String) throws {
    let url = try #require(HTTPURL(text))
    #expect(url.normalized.text == normal)
    #expect(url.normalized == HTTPURL(normal) && HTTPURL(normal)?.isNormal == true)
    #expect(url.normalized.origin == url.origin && url.normalized.query == url.query)
    #expect(url.path == "/" || url.appending(pathBytes: "é".utf8).normalized.text.hasSuffix("%C3%A9"))
    // Requests go to the URL as it was given.
    #expect(url.isNormal == (url.text == normal))
  }

  @Test func bytesOfAnyKindAreEncoded() {
    #expect(HTTPURL.encode("a-b.c_d~e/f".utf8) == "a-b.c_d~e/f")
    #expect(HTTPURL.encode([0xFF, 0x00, 0x0A, 0x20]) == "%FF%00%0A%20")
    #expect(HTTPURL.encode("ä?#%+".utf8) == "%C3%A4%3F%23%25%2B")
  }

  @Test func appendedPathBytesAreEncodedWithinTheFolder() throws {
    let base = try #require(HTTPURL("http://a/b?token=1"))
    let url = base.appending(pathBytes: "c d/e?f".utf8)
    #expect(url.text == "http://a/b/c%20d/e%3Ff")
    #expect(url.path == "/b/c%20d/e%3Ff" && url.query == nil)
    #expect(HTTPURL(url.text) == url)
  }

  /// A combining mark makes one character with the slash before it: a server's `Location` ended the program, or led to
  /// another folder. Bytes outside ASCII are percent-encoded, so it is a byte like others.
  @Test(arguments: [
    ("/\u{301}a/b", "https://host/%CC%81a/b"), ("\u{301}a", "https://host/x/%CC%81a"),
    ("//other/\u{301}a", "https://other/%CC%81a"), ("?\u{301}=1", "https://host/x/y?%CC%81=1"),
    ("https://other/\u{301}\u{301}", "https://other/%CC%81%CC%81"), ("/a/../\u{897}", "https://host/%E0%A2%97"),
  ])
  func aCombiningMarkIsAByteLikeOthers(_ reference: String, _ text: String) throws {
    let url = try #require(HTTPURL("https://host/x/y")!.resolve(reference))
    #expect(url.text == text)
    #expect(HTTPURL(text) == url)
    #expect(url.folder.resolve("z") != nil && url.resolve("z") != nil)
    #expect(url.lastComponent.isEmpty == false)
  }
}
