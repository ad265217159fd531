import Blobs
import Testing

@testable import BlobServer

/// Names in archives are chosen by whoever sends files.
struct ArchiveNameTests {
  @Test(arguments: [
    ("a.jpg", "a.jpg"), ("Grüße – 日本語 👩‍👩‍👧.jpg", "Grüße – 日本語 👩‍👩‍👧.jpg"), ("..\\..\\x.bat", ".._.._x.bat"),
    ("C:evil", "C_evil"), ("a.txt:stream", "a.txt_stream"), (".. ", "___"), ("...", "___"), ("a. .", "a___"),
    ("a\u{1B}[2J\n", "a_[2J_"), ("a\u{202E}gpj.exe", "a_gpj.exe"), ("CON", "_CON"), ("nul.txt", "_nul.txt"),
    ("Com1 .x", "_Com1 .x"), ("LPT¹", "_LPT¹"), ("COM", "COM"), ("CONSOLE", "CONSOLE"), ("a?*<>|\"", "a______"),
    ("", "_"), (" a", " a"), ("\u{2028}", "_"),
  ]) func aNameMeansTheSameOnEverySystem(_ name: String, _ safe: String) {
    #expect(ArchiveName.safe(name.utf8) == safe)
  }

  @Test func bytesThatAreNoTextBecomeUnderscores() {
    #expect(ArchiveName.safe([0x61, 0xFF, 0xC3, 0x62]) == "a__b")
    #expect(ArchiveName.safe([0xC0, 0xAE, 0xC0, 0xAE]).utf8.allSatisfy { $0 == UInt8(ascii: "_") })
  }

  @Test func noNameTakesThePlaceOfAnother() {
    func names(_ names: [String]) -> [String] { ArchiveName.names(for: names.map { BytePath($0) }) }
    #expect(names(["a:b", "a?b", "a_b"]) == ["a_b (2)", "a_b (3)", "a_b"])
    #expect(names(["A.jpg", "a.jpg", "a (2).jpg"]) == ["A.jpg", "a (3).jpg", "a (2).jpg"])
    #expect(names(["u\u{308}", "ü"]).map { $0.unicodeScalars.count } == [2, 5])
    let long = String(repeating: "x", count: 250) + ".jpg"
    let found = names([long, long.uppercased()])
    #expect(found.allSatisfy { $0.utf8.count <= 255 } && found[1].hasSuffix(" (2).JPG"))
  }

  /// The search for free numbers takes no time that grows with their square.
  @Test func manyNamesThatBecomeTheSameOneGetNumbers() {
    let names = (0..<60_000).map { number in
      BytePath((0..<8).map { UInt8(0x80 + (number >> ($0 * 2)) % 4) })
    }
    let found = ArchiveName.names(for: names)
    #expect(Set(found).count == names.count && found.contains("________ (60000)"))
  }
}
