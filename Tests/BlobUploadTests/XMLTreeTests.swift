import Blobs
import Testing

@testable import BlobUpload

@Suite struct XMLTreeTests {
  private func parse(_ text: String) -> XMLTree? { XMLTree(Array(text.utf8)) }

  @Test func elementsAreFoundWithTheirText() throws {
    let list = try #require(
      parse("<?xml version=\"1.0\"?>\n <l xmlns:x='u'><Part><x:Size> 5 </x:Size><E>&quot;a&quot;</E></Part><Part/></l>")
    )
    #expect(list.name == "l" && list.all("Part").count == 2)
    #expect(list["Part"]?.text("Size") == "5" && list["Part"]?.text("E") == "\"a\"")
    #expect(list.all("Part")[1].text("Size") == nil)
  }

  @Test(arguments: [
    "", "no", "<a>", "<a></b>", "<a/><b/>", "<a>&undefined;</a>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "<a>\u{0}</a>",
  ])
  func xmlWithUnsupportedConstructsIsRefused(_ text: String) { #expect(parse(text) == nil) }

  /// S3 servers write control characters in names unchanged, or as references, which XML 1.0 does not allow.
  @Test(arguments: ["a\u{1}b", "a&#1;b", "a&#x1F;b"]) func controlCharactersAreReplaced(_ key: String) {
    #expect(parse("<l><Key>\(key)</Key><Size>5</Size></l>")?.text("Key") == "a\u{FFFD}b")
    #expect(parse("<l><Key>\(key)&amp;&#65;&#10;ä</Key></l>")?.text("Key") == "a\u{FFFD}b&A\nä")
    #expect(parse("<l><Key>\(key)</l>") == nil)
  }

  @Test func depthIsBounded() {
    func nested(_ depth: Int) -> String {
      String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
    }
    #expect(parse(nested(16)) != nil && parse(nested(17)) == nil && parse(nested(100_000)) == nil)
  }
}
