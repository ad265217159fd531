import Blobs
import Platform
import Testing

struct BytePathTests {
  @Test func partsAreThoseBetweenSlashes() {
    let path: BytePath = "/a//b/c.jpg/"
    #expect(path.components == ["a", "b", "c.jpg"])
    #expect(path.name == "c.jpg")
    #expect(path.isAbsolute && path.hasTrailingSlash && !path.isEmpty)
    #expect(("/" as BytePath).name == "" && ("" as BytePath).name.isEmpty)
  }

  @Test func appendingPutsOneSlashBetween() {
    #expect(("a" as BytePath).appending("b") == "a/b")
    #expect(("a/" as BytePath).appending("b") == "a/b")
    #expect(("" as BytePath).appending("b") == "b")
    #expect(("/" as BytePath).appending("b") == "/b")
  }

  @Test func namesNeedNotBeText() {
    let name = BytePath([0x66, 0xFF, 0x6F])
    #expect(!name.isUTF8)
    #expect(name.description == "f\u{FFFD}o")
    #expect(name.withCString { BytePath(cString: $0) } == name)
    #expect(("grün" as BytePath).isUTF8)
  }

  @Test func pathWithANULNamesNothing() {
    let path = BytePath(Array("/etc/passwd\0.jpg".utf8))
    #expect(path.withCString { strlen($0) } == 0)
  }

  @Test func absoluteBeginsAtTheWorkingDirectory() {
    #expect(("/x" as BytePath).absolute() == "/x")
    let absolute = ("x" as BytePath).absolute()
    #expect(absolute.isAbsolute && absolute.name == "x" && absolute.components.count > 1)
  }

  @Test func orderIsThatOfTheBytes() {
    #expect((["b", "a\u{FF}", "a", "B"] as [BytePath]).sorted() == ["B", "a", "a\u{FF}", "b"])
  }
}
