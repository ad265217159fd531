import Blobs
import Testing

@testable import fullbore

@Suite struct SmallTests {
  @Test(
    arguments: [
      ("a.jpg", "image/jpeg"), ("IMG_1.HEIC", "image/heic"), ("x/y.MOV", "video/quicktime"),
      ("a.tar.gz", "application/gzip"),
      ("a.dng", "image/x-adobe-dng"), ("noextension", "application/octet-stream"), (".jpg", "application/octet-stream"),
      ("a.", "application/octet-stream"), ("dir.jpg/file", "application/octet-stream"),
      ("", "application/octet-stream"),
    ] as [(BytePath, String)])
  func theExtensionTellsTheType(_ path: BytePath, _ type: String) {
    #expect(ContentType.of(path) == type)
  }

  @Test func checksumLinesAreThoseOfSha256sum() {
    func line(_ name: BytePath) -> String { String(decoding: ChecksumCommand.line("ab", name), as: UTF8.self) }
    #expect(line("a b") == "ab  a b\n")
    #expect(line("a\nb") == "\\ab  a\\nb\n")
    #expect(line("a\\b\r") == "\\ab  a\\\\b\\r\n")
  }

  @Test func addressesToListenAt() {
    #expect(ListenAddress("127.0.0.1:0")?.port == 0)
    #expect(ListenAddress("[::1]:8080") == ListenAddress("[::1]:8080"))
    #expect(ListenAddress("[::1]:8080")?.address == "::1")
    for text in ["", ":80", "host", "host:", "host:x", "host:65536", "::1:80"] {
      #expect(ListenAddress(text) == nil, "\(text)")
    }
    for text in ["127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"] {
      #expect(ListenAddress(text)?.isLoopback == true, "\(text)")
    }
    for text in ["0.0.0.0:1", "[::]:1", "127.evil.example:1", "192.168.1.1:1"] {
      #expect(ListenAddress(text)?.isLoopback == false, "\(text)")
    }
  }

  @Test(
    arguments: [
      ("*.jpg", "a/b.jpg", true), ("*.jpg", "a/b.png", false), ("b.*", "a/b.jpg", true), ("a/*", "a/b/c.jpg", true),
      ("?.jpg", "a/b.jpg", true), ("*.JPG", "b.jpg", false), ("[!b].jpg", "b.jpg", false),
    ] as [(BytePath, BytePath, Bool)])
  func globsSeePathAndName(_ pattern: BytePath, _ path: BytePath, _ matches: Bool) {
    #expect(GlobFilter(includes: [Glob(pattern)]).includes(path, path.name) == matches)
  }

  @Test func programsExitWithWhatTheShellExpects() async {
    #expect(await Fullbore.run(["--version"]) == .ok)
    #expect(await Fullbore.run([]) == .usage)
    #expect(await Fullbore.run(["nonsense"]) == .usage)
    #expect(await Fullbore.run(["push", "--nonsense"]) == .usage)
    #expect(await Fullbore.run(["push", "--help"]) == .ok)
  }
}
