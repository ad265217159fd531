import BlobCrypto
import Blobs
import Testing

@testable import BlobUpload

/// Reading and writing of lists without a server. `EndToEndTests` compares them with those of the reference program.
struct HashListTests {
  private func bytes(_ source: HashListSource, at offset: Int64 = 0) throws -> [UInt8] {
    let reader = try source.open(at: offset, Cancellation())
    var bytes: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1000, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try reader.read(into: buffer)
      if count == 0 { return bytes }
      bytes += buffer.prefix(count)
    }
  }

  private func facts(_ format: HashListFormat, hasFolders: Bool = true) -> HashListFacts {
    HashListFacts(
      date: 1_764_297_489, host: "a<b", version: "1", ignored: [".*"], comment: "", format: format,
      hasFolders: hasFolders)
  }

  private func read(_ text: [UInt8]) throws -> (records: [HashListRecord], head: HashListHead) {
    var records: [HashListRecord] = []
    let head = try HashListReader.read(text, "list.mhl") { records += $0 }
    return (records, head)
  }

  /// The texts are those of the reference program, ascmhl 1.2.
  @Test(arguments: [
    ("", "c459dsjfscH38cYeXXYogktxf4Cd9ibshE3BHUo6a58hBXmRQdZrAkZzsWcbWtDg5oQstpDuni4Hirj75GEmTc1sFT"),
    ("abc", "c45S4rnaTNWonxss1u8LzsaJdEph1AJhWUF4sh2waXKMsutyfAxg4ybUeuXVWS9HdNcEypmeXn8FZGonD4w1rj9DZp"),
    ("123456789", "c45MgM4TUD1oF8MmNfFA8FPSWpEyynumsZYo7uVQD13spqVFpoBDS72sn1w1v8vDJ6n5QSVqCWMpkryYJD2uz5LULL"),
  ])
  func c4IsThatOfTheReference(_ text: String, _ c4: String) {
    let digest = Digest.value(of: Array(text.utf8), .sha512)
    #expect(HashListFormat.c4.text(digest) == c4)
    #expect(HashListFormat.c4.digest(c4) == digest)
    #expect(HashListFormat.c4.digest(String(c4.dropLast()) + "0") == nil)
  }

  @Test func textsThatAreNoC4AreRefused() {
    #expect(HashListFormat.c4.digest("c4" + String(repeating: "z", count: 88)) == nil, "it has more than 512 bits")
    #expect(HashListFormat.c4.digest("c4") == nil)
    #expect(HashListFormat.md5.digest("d41d8cd98f00b204e9800998ecf8427") == nil)
    #expect(HashListFormat.md5.digest("d41d8cd98f00b204e9800998ecf8427x") == nil)
    #expect(HashListFormat.c4.text([UInt8](repeating: 0, count: 64)) == "c4" + String(repeating: "1", count: 88))
  }

  /// The hashes are those of `ascmhl create` 1.2 of a folder with these two files.
  @Test func hashesOfFoldersAreThoseOfTheReference() throws {
    let table = try HashListTable()
    for (path, text) in [("A/x.mov", "hi\n"), ("y.mov", "there\n")] {
      let digest = Digest.value(of: Array(text.utf8), .xxh128)
      let file = HashListFile(
        path: BytePath(path), size: Int64(text.utf8.count), modified: 0, source: nil, digest: digest)
      try table.add([file], .xxh128, date: 0)
    }
    #expect(try table.judge().failed.isEmpty)
    try FolderHashes.add(to: table, .xxh128)
    let text = String(decoding: try bytes(try HashListSource(table, facts(.xxh128))), as: UTF8.self)
    for hash in [
      "28330301c1cca23ca79ee91800262c9d", "8ad5b8f10f03f1c0fd3f174eb2c6ad5a", "d8c5ce97e26317097fc16df6d5fd99d6",
      "e6b68ee55326ce98fcd47a2c873ce42a",
    ] {
      #expect(text.contains(">\(hash)</xxh128>"), "\(text)")
    }
  }

  @Test func aListIsReadAsItWasWritten() throws {
    let names = [
      "a & b <c> \"d\".jpg", " leading and trailing ", "line\nfeed\rreturn\ttab", "ü/<\u{301}/]]>.mov", "e\u{301}",
    ]
    let table = try HashListTable()
    let many = names.map { BytePath($0) } + (0..<450).map { BytePath("many/\($0)") }
    try table.add(
      many.map { .init(path: $0, size: 3, modified: 1, source: nil, digest: Digest.value(of: $0.bytes, .md5)) }, .md5,
      date: 0)
    _ = try table.judge()
    try FolderHashes.add(to: table, .md5)
    let source = try HashListSource(table, facts(.md5))
    let text = try bytes(source)
    #expect(Int64(text.count) == source.whole.length)
    #expect(HashListFormat.c4.text(Digest.value(of: text, .sha512)) == source.c4)
    for offset in [1, 999, 60_000, text.count] {
      #expect(try bytes(source, at: Int64(offset)) == Array(text[offset...]), "from byte \(offset)")
    }
    let (records, head) = try read(text)
    #expect(Set(records.map(\.path)) == Set(many) && records.count == many.count)
    #expect(
      records.allSatisfy {
        $0.hashes == [.init(format: .md5, digest: Digest.value(of: $0.path.bytes, .md5), action: .original)]
      })
    #expect(head.ignored == [".*"])
  }

  @Test func namesThatXMLCannotHaveAreKnown() {
    for name: [UInt8] in [[0xFF], [1], [0x1B, 0x41], [0xEF, 0xBF, 0xBF], [0xEF, 0xBF, 0xBE]] {
      #expect(!BytePath(name).canBeInXML, "\(name)")
    }
    for name in ["a", "\u{7F}", "\n", "😀", "\u{FFFD}"] { #expect(BytePath(name).canBeInXML) }
  }

  private func list(_ hashes: String, version: String = "2.0", before: String = "", after: String = "") -> [UInt8] {
    Array(
      """
      <?xml version="1.0"?>\(before)<hashlist version="\(version)" xmlns="urn:ASC:MHL:v2.0"><processinfo/>\
      <hashes>\(hashes)</hashes>\(after)</hashlist>
      """.utf8)
  }
  private static let md5 = "<md5>d41d8cd98f00b204e9800998ecf8427e</md5>"

  @Test func hostileListsAreRefused() throws {
    func hash(_ path: String) -> String { "<hash><path>\(path)</path>\(Self.md5)</hash>" }
    #expect(try read(list(hash("a"))).records.count == 1)
    for path in ["../a", "a/../b", "/etc/passwd", "", ".", "a/./b", "a/", "a&#0;b", "a&#1;b", "&x;", ".."] {
      #expect(throws: UploadError.self, "'\(path)'") { try read(list(hash(path))) }
    }
    let deep = String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
    let entity = "<!DOCTYPE hashlist [<!ENTITY x \"y\">]>"
    for text in [
      list("<hash><path>a</path><md5>zz</md5></hash>"), list(hash("a"), version: "1.1"),
      list(hash("a"), before: entity),
      list(deep),
      list(hash("a"), after: "<references><hashlistreference><path>../x</path></hashlistreference></references>"),
      list("<hash><path>a</path><previousPath>/b</previousPath>\(Self.md5)</hash>"), Array("<hashlist".utf8), [],
      Array("<html/>".utf8), list(hash("a")).dropLast(5) + [],
    ] {
      #expect(throws: UploadError.self, "\(String(decoding: text.prefix(200), as: UTF8.self))") { try read(text) }
    }
  }

  @Test func chainsWithPathsThatLeadElsewhereAreRefused() throws {
    func chain(
      _ path: String, _ number: String = "1", c4: String = HashListFormat.c4.text([UInt8](repeating: 7, count: 64))
    ) -> [UInt8] {
      Array(
        "<ascmhldirectory><hashlist sequencenr=\"\(number)\"><path>\(path)</path><c4>\(c4)</c4></hashlist></ascmhldirectory>"
          .utf8)
    }
    #expect(try HashListReader.chain(chain("0001_a.mhl"), "c").generations.map(\.name) == ["0001_a.mhl"])
    for text in [
      chain("../a.mhl"), chain("/a.mhl"), chain("a/b.mhl"), chain(".."), chain("a", "0"), chain("a", "-1"),
      chain("a", "x"),
      chain("a", c4: "c4"), Array("<x/>".utf8),
    ] {
      #expect(throws: UploadError.self) { try HashListReader.chain(text, "c") }
    }
  }

  /// More elements than a tree may have, of which none is kept.
  @Test func aListMayHaveMoreFilesThanATreeHasElements() throws {
    let hashes = (0..<30_000).map { "<hash><path size=\"0\">\($0)</path>\(Self.md5)</hash>" }.joined()
    #expect(try read(list(hashes)).records.count == 30_000)
    #expect(XMLTree(list(hashes)) == nil)
  }

  @Test func actionsAreWhatWasDone() throws {
    func record(
      _ path: String, _ format: HashListFormat, _ text: String, _ action: HashListAction = .original
    ) -> HashListRecord {
      .init(
        path: BytePath(path), previousPath: nil,
        hashes: [.init(format: format, digest: Digest.value(of: Array(text.utf8), format.algorithm), action: action)])
    }
    let table = try HashListTable()
    try table.add(
      ["same", "other", "new", "md5"].map {
        .init(
          path: BytePath($0), size: 1, modified: 1, source: BytePath("/\($0)"), digest: Digest.value(of: [97], .sha1))
      }, .sha1, date: 0)
    try table.add([.init(path: "unread", size: 1, modified: 1, source: nil, digest: nil)], .sha1, date: 0)
    try table.add(earlier: [record("same", .sha1, "a"), record("other", .sha1, "b"), record("md5", .md5, "a")])
    // A later list does not replace the first hash.
    try table.add(earlier: [record("other", .sha1, "a", .verified)])
    let (digest, path): ([UInt8], BytePath) = (Digest.value(of: [97], .sha1), "replaced")
    try table.add(
      [.init(path: path, size: 1, modified: 1, source: nil, digest: digest, replaces: true)], .sha1, date: 0)
    try table.add(earlier: [record("replaced", .sha1, "b")])
    let incomplete = try table.incomplete(after: "", .sha1)
    #expect(incomplete.map(\.file.path) == ["md5", "unread"] && incomplete.map(\.formats) == [[.md5], [.sha1]])
    try table.add(Digest.value(of: [97], .md5), .md5, of: "md5", date: 0)
    try table.remove("unread")
    #expect(try table.incomplete(after: "", .sha1).isEmpty)
    let (failed, replaced) = try table.judge()
    #expect(failed == ["other"] && replaced == 1)
    let records = try read(try bytes(try HashListSource(table, facts(.sha1, hasFolders: false)))).records
    let actions = Dictionary(uniqueKeysWithValues: records.map { ($0.path.description, $0.hashes.map(\.action)) })
    #expect(
      actions == [
        "same": [.verified], "other": [.failed], "new": [.original], "replaced": [.original],
        "md5": [.verified, .verified],
      ])
    // The next list compares with the hash of the content that replaced another one.
    try table.add(earlier: records)
    #expect(try table.earlier(of: path).map(\.digest) == [digest])
    #expect(try table.earlier(of: "other").map(\.digest) == [Digest.value(of: [98], .sha1)])
  }
}
