import BlobTesting
import TestSupport
import Blobs
import Testing

struct SourceResolverTests {
  @Test(arguments: [
    "file:///films/a%20b.mov", "file:/films/a%20b.mov", "FILE://localhost/films/a b.mov",
    "file:///films/a%20b.mov?x=1#t=2",
  ])
  func fileURLNamesItsFile(url: String) throws {
    let source = try #require(try SourceResolver.files.source(for: url) as? FileSource)
    #expect(source.path == "/films/a b.mov")
  }

  @Test func anyByteCanBeNamed() throws {
    let source = try #require(try SourceResolver.files.source(for: "file:///%ff%2F") as? FileSource)
    #expect(source.path == BytePath([47, 255, 47]))
  }

  @Test(arguments: [
    "", "file", "file:", "file:x", "file://host/x", "file:////x", "file:///%4", "file:///%zz", "file:///a%00b",
    "sqlite:x?y", "https://example.org/", "/films/a.mov",
  ])
  func aURLOfNoKnownSourceIsRefused(url: String) {
    #expect(failure { () throws(BlobError) in try SourceResolver.files.source(for: url) }?.code == .unsupported)
  }

  @Test func kindOfSourceCanBeAdded() throws {
    let resolver = SourceResolver.files.adding("Memory") { url in DataSource(url) }
    let source = try #require(try resolver.source(for: "memory:abc") as? DataSource)
    #expect(source.bytes == Array("memory:abc".utf8))
  }
}
