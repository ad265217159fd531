import Blobs
import Testing

@testable import fullbore

@Suite struct SmallTests {
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
    for text in [":80", "*:80", "0:80"] { #expect(ListenAddress(text)?.address == "0.0.0.0", "\(text)") }
    for text in ["", ":", "host", "host:", "host:x", "host:65536", "::1:80"] {
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

  @Test(
    arguments: [
      ("?.jpg", "é.jpg", true), ("??.jpg", "é.jpg", false), ("[éü].jpg", "ü.jpg", true), ("[!é].jpg", "é.jpg", false),
      ("[à-ü].jpg", "é.jpg", true), ("[à-ü].jpg", "ÿ.jpg", false), ("[!a].jpg", "日.jpg", true),
      ("?.jpg", "😀.jpg", true),
      ("?/?.jpg", "é/ü.jpg", true), ("\\é?", "éa", true), ("*é", "aé", true), ("?", "é", true), ("[^-é]", "日", true),
    ] as [(BytePath, BytePath, Bool)])
  func globsCountCharacters(_ pattern: BytePath, _ path: BytePath, _ matches: Bool) {
    #expect(GlobFilter(includes: [Glob(pattern)]).includes(path, path.name) == matches)
  }

  @Test func aByteThatIsNotUTF8IsOneCharacterOfAGlob() {
    func matches(_ pattern: [UInt8], _ name: [UInt8]) -> Bool {
      GlobFilter(includes: [Glob(BytePath(pattern))]).includes(BytePath(name), BytePath(name))
    }
    let (question, e) = (UInt8(ascii: "?"), Array("é".utf8))
    #expect(matches([question], [0xFF]) && !matches([question], [0xFF, 0xFE]))
    #expect(matches([question, question], [0xC3, 0xC3]) && matches([question, question], [0xC3] + e))
    #expect(matches([question, 0xFF], e + [0xFF]) && !matches([question, 0xFE], e + [0xFF]))
    // The first half of a character is not a character.
    #expect(!matches([0xC3, question], e))
    #expect(matches(Array("[".utf8) + [0xFE, 0xFF] + Array("]".utf8), [0xFF]))
  }

  @Test func theVersionNamesTheCommitAndTheLibraries() {
    let text = ProgramVersion(commit: 0x0874_e59a_a1b2_c3d4).text
    #expect(text.hasPrefix("fullbore \(Release.version)\ncommit 0874e59aa1b2c3d4\n"), "\(text)")
    #expect(ProgramVersion(commit: nil).text.contains("\nno commit"))
    var libraries = ["libcurl", "OpenSSL", "SQLite", "zlib", "libqrencode"]
    #if os(Linux)
      libraries.append("xxHash")
    #endif
    let told = text.split(separator: "\n").last?.split(separator: ",").map { $0.split(separator: " ") } ?? []
    for library in libraries {
      let version = told.first { $0.first.map(String.init) == library }?.last?.first
      #expect(version?.isNumber == true, "\(library): \(text)")
    }
  }

  @Test func programsExitWithWhatTheShellExpects() async {
    #expect(await Fullbore.run(["--version"]) == .ok)
    #expect(await Fullbore.run([]) == .usage)
    #expect(await Fullbore.run(["nonsense"]) == .usage)
    #expect(await Fullbore.run(["push", "--nonsense"]) == .usage)
    #expect(await Fullbore.run(["push", "--help"]) == .ok)
  }
}
