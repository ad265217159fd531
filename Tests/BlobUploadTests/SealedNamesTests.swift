import BlobCrypto
import BlobHTTP
import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

/// Opaque names, and the indexes that say what they stand for.
@Suite struct SealedNamesTests {
  private let names = SealedNames(key: Array(1...32))!
  private let files = [
    UnindexedFile(id: 1, path: "a/IMG 1.jpg.age", length: 1000, modified: -5),
    UnindexedFile(
      id: 2, path: BytePath([0xFF, 0x0A, 0x25, 0x2F, 0x20, 0x62] + ".age".utf8), length: nil, modified: nil),
  ]

  @Test func aNameDependsOnTheKeyAndTheWholePath() throws {
    let path = names.path(of: "DCIM/IMG_1.jpg.age")
    #expect(path == names.path(of: "DCIM/IMG_1.jpg.age"))
    let words = path.components
    #expect(words.count == 2 && words[0].bytes.count == 26 && words[1].bytes.count == 30, "\(path)")
    #expect(SealedNames.isOpaque(words[1]) && !SealedNames.isOpaque("IMG_1.jpg.age"))
    #expect(names.path(of: "DCIM/IMG_2.jpg.age").components[0] == words[0])
    #expect(names.path(of: "IMG_1.jpg.age").name != words[1])
    #expect(names.path(of: "dcim/IMG_1.jpg.age").name != words[1])
    #expect(SealedNames(key: Array(2...33))?.path(of: "DCIM/IMG_1.jpg.age") != path)
    #expect(SealedNames(key: [1]) == nil)
    // Computed by Python: base64.b32encode(hmac.digest(bytes(range(1, 33)), b'a.age', 'sha256'))[:26].lower()
    #expect(names.path(of: "a.age").description == "tbr5yqnpxsoifcdlfinjvifpik.age")
  }

  @Test func indexNamesAreToldFromOthers() {
    let name = SealedNames.newIndexName()
    #expect(SealedNames.isIndex(name) && !SealedNames.isOpaque(name) && name != SealedNames.newIndexName())
    #expect(!SealedNames.isIndex("fullbore-index-a.age") && !SealedNames.isIndex(names.path(of: "a.age")))
  }

  /// A target shows the opaque path alone, and the journal has the real one.
  @Test func aTargetHasTheOpaquePath() throws {
    let url = try #require(HTTPURL("https://host.example/2026/"))
    var destination = UploadDestination(endpoint: url, uploadProtocol: PlainPut(), limits: PartLimits())
    let recipient = try SealRecipient("age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj")
    var sealing = try Sealing(for: [recipient])
    sealing.names = names
    destination.sealing = sealing
    let target = destination.target("a/b.jpg.age", length: 1)
    #expect(target.path == names.path(of: "a/b.jpg.age") && target.plainPath == "a/b.jpg.age")
    #expect(target.url.text == "https://host.example/2026/\(target.path)")
    let item = UploadItem(source: DataSource([]), info: BlobInfo(length: 1), identity: "/x", target: target)
    #expect(item.intent().path == "a/b.jpg.age" && item.intent().sealedName != nil)
    let second = try #require(item.under(2, destination))
    #expect(second.target.plainPath == "a/b-2.jpg.age" && second.target.path == names.path(of: "a/b-2.jpg.age"))
  }

  private func read(_ bytes: [UInt8]) throws -> (NamesIndex.Head, [NamesIndex.Entry]) {
    var found: [NamesIndex.Entry] = []
    let head = try NamesIndex.read(DataSource(bytes, validator: Validator(version: "1")), Cancellation()) {
      _, entries in
      found += entries
      return true
    }
    return (head, found)
  }

  @Test func anIndexIsReadAsItWasWritten() throws {
    let (bytes, count) = NamesIndex.bytes(of: files, names, at: 7)
    #expect(count == 2)
    let (head, entries) = try read(bytes)
    #expect(head.names == names && head.written == 7)
    #expect(entries.map(\.plain) == files.map(\.path) && entries.map(\.modified) == [-5, nil])
    #expect(entries.map(\.length) == [1000, nil] && entries.map(\.sealed) == files.map { names.path(of: $0.path) })
  }

  /// Long names end an index early, and the next one has the others.
  @Test func anIndexHasAnEnd() throws {
    let long = (0..<2000).map { number in
      let name = String(repeating: "ü", count: 1000) + "\(number).age"
      return UnindexedFile(id: Int64(number), path: BytePath(name), length: 1, modified: 1)
    }
    let (bytes, count) = NamesIndex.bytes(of: long, names, at: 7)
    #expect(count < long.count && bytes.count < 5 << 20, "\(count), \(bytes.count)")
    #expect(try read(bytes).1.count == count)
  }

  /// Everyone who has the public key can make an index. The names of others cannot be changed with it.
  @Test func aHostileIndexIsRefused() throws {
    let text = String(decoding: NamesIndex.bytes(of: files, names, at: 7).bytes, as: UTF8.self)
    let lines = text.split(separator: "\n").map(String.init)
    let first = lines[3].split(separator: " ").map(String.init)
    func line(_ plain: String, _ sealed: String? = nil) -> String {
      let path = BytePath(PercentCoding.decode(plain.utf8) ?? [])
      return "\(sealed ?? names.path(of: path).description) 1 1 \(plain)"
    }
    let hostile = [
      line("..%2Fout.age"), line("../out.age"), line("/etc/x.age"), line("a/./b.age"), line("a/"), line("a%00.age"),
      line("no-ending"), line(".age"), line("other.age", first[0]), line("a/IMG%201.jpg.age", "x"),
      "x 1 1", "x y 1 a.age", "\(first[0]) 1 99999999999999999999 \(first[3])", "",
      line(String(repeating: "a", count: 100_000) + ".age"),
    ]
    for bad in hostile {
      let bytes = Array((lines + [bad, ""]).joined(separator: "\n").utf8)
      #expect(throws: BlobError.self, "\(bad.prefix(100))") { try read(bytes) }
    }
    let cut = Array(text.utf8.dropLast(3))
    #expect(throws: BlobError.self) { try read(cut) }
    let starts = [
      "", "fullbore-names 2\n", "fullbore-names 1\nkey 00\n", "fullbore-names 1\n\(lines[1])\n\(lines[3])\n",
    ]
    for start in starts {
      #expect(throws: BlobError.self, "\(start)") { try read(Array(start.utf8)) }
    }
    #expect(throws: BlobError.self, "too long") {
      let body = String(repeating: lines[3] + "\n", count: 300_000)
      return try read(Array((lines[..<3].joined(separator: "\n") + "\n" + body).utf8))
    }
  }
}

extension JournalTests {
  /// Files that are in no index of sealed names.
  struct Unindexed {
    private func sealed(_ name: String) -> JournalIntent {
      var intent = intent(name)
      intent.sealedName = SealedNameFacts(modified: 9)
      return intent
    }

    private func done(_ intent: JournalIntent, in journal: Journal, again: Bool = false) async throws -> Int64 {
      let id = try #require(try await journal.claim(intent, again: again).id)
      journal.done(id, UploadResult())
      return id
    }

    private let index = SentIndex(path: "fullbore-index-a.age", sha256: [1, 2])

    @Test func onlyWhatIsDoneAndInNoIndexIsNamed() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let first = try await done(sealed("a.jpg"), in: journal)
      let destination = try #require(try await journal.finished().first).destinationID
      _ = try await done(intent("plain.jpg"), in: journal)
      let failed = try #require(try await journal.claim(sealed("b.jpg")).id)
      journal.failed(failed, "refused")
      let removed = try await done(sealed("c.jpg"), in: journal)
      try await journal.remove([removed])
      try await journal.flush()
      // The journal is not closed, as after a kill.
      let other = try await folder.open()
      let file = UnindexedFile(id: first, path: "a.jpg", length: 100, modified: 9)
      #expect(try await other.sealedNames.unindexed(at: destination, limit: 10) == [file])
      #expect(try await other.sealedNames.destinations().keys.sorted() == [destination])
      try await other.sealedNames.indexed([first], in: index, at: destination)
      #expect(try await other.sealedNames.unindexed(at: destination, limit: 10).isEmpty)
      #expect(try await other.sealedNames.destinations().isEmpty)
      // What is sent again is named again, and what is done already is not.
      _ = try await journal.claim(sealed("a.jpg"))
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10).isEmpty)
      _ = try await done(sealed("a.jpg"), in: journal, again: true)
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10) == [file])
    }

    /// It is named once, whether or not it has an entry.
    @Test func aFileThatWasFoundThereIsNamedOnce() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let destination = try await journal.destinationID(.put)
      let file = UnindexedFile(id: 0, path: "a.jpg", length: 100, modified: 9)
      try await journal.sealedNames.foundTaken(file, at: destination)
      try await journal.sealedNames.foundTaken(file, at: destination)
      let found = try await journal.sealedNames.unindexed(at: destination, limit: 10)
      #expect(found.count == 1 && found.first?.path == "a.jpg" && found.first?.modified == 9)
      #expect(try await journal.sealedNames.destinations().keys.sorted() == [destination])
      try await journal.sealedNames.indexed(found.map(\.id), in: index, at: destination)
      try await journal.sealedNames.foundTaken(file, at: destination)
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10).isEmpty)
      #expect(try await journal.sealedNames.destinations().isEmpty)
    }

    @Test func theNamesOfALostIndexAreSentAgain() async throws {
      let journal = try await JournalFolder().open()
      let first = try await done(sealed("a.jpg"), in: journal)
      _ = try await done(sealed("b.jpg"), in: journal)
      let destination = try #require(try await journal.finished().first).destinationID
      try await journal.sealedNames.foundTaken(
        UnindexedFile(id: 0, path: "c.jpg", length: 100, modified: 9), at: destination)
      let files = try await journal.sealedNames.unindexed(at: destination, limit: 10)
      #expect(files.map(\.path) == ["a.jpg", "b.jpg", "c.jpg"])
      try await journal.sealedNames.indexed([first], in: index, at: destination)
      try await journal.sealedNames.indexed(files.dropFirst().map(\.id), in: index, at: destination)
      let sent = try await journal.sealedNames.sentIndexes(at: destination)
      #expect(sent.map(\.path) == [index.path, index.path] && sent.map(\.sha256) == [[1, 2], [1, 2]])
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10).isEmpty)
      try await journal.sealedNames.lost(sent[1])
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10).map(\.path) == ["b.jpg", "c.jpg"])
      #expect(try await journal.sealedNames.sentIndexes(at: destination).map(\.id) == [sent[0].id])
      #expect(try await journal.sealedNames.sentIndexes(at: destination, areLost: true).map(\.id) == [sent[1].id])
      // The next index takes its place.
      var next = index
      (next.id, next.sha256) = (sent[1].id, [3])
      try await journal.sealedNames.indexed(files.dropFirst().map(\.id), in: next, at: destination)
      #expect(try await journal.sealedNames.sentIndexes(at: destination).map(\.sha256) == [[1, 2], [3]])
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10).isEmpty)
      #expect(try await journal.sealedNames.sentIndexes(at: destination, areLost: true).isEmpty)
    }

    /// It may have the only names of files that the journal knows nothing of.
    @Test func anIndexIsOnlyReplacedIfAllItsNamesAreKnown() async throws {
      let journal = try await JournalFolder().open()
      let first = try await done(sealed("a.jpg"), in: journal)
      let second = try await done(sealed("b.jpg"), in: journal)
      let destination = try #require(try await journal.finished().first).destinationID
      try await journal.sealedNames.indexed([first, second], in: index, at: destination)
      try await journal.remove([first])
      try await journal.flush()
      let sent = try #require(try await journal.sealedNames.sentIndexes(at: destination).first)
      try await journal.sealedNames.lost(sent)
      #expect(try await journal.sealedNames.unindexed(at: destination, limit: 10).map(\.path) == ["b.jpg"])
      #expect(try await journal.sealedNames.sentIndexes(at: destination, areLost: true).isEmpty)
      #expect(try await journal.sealedNames.sentIndexes(at: destination).isEmpty)
    }

    /// The second version is refused, since the first one is at the destination.
    @Test func aVersionThatIsReplacedKeepsItsName() async throws {
      let journal = try await JournalFolder().open()
      _ = try await done(sealed("a.jpg"), in: journal)
      let destination = try #require(try await journal.finished().first).destinationID
      var grown = sealed("a.jpg")
      (grown.length, grown.validator) = (200, Validator(version: "grown"))
      let second = try #require(try await journal.claim(grown).id)
      journal.failed(second, "refused")
      try await journal.flush()
      let files = try await journal.sealedNames.unindexed(at: destination, limit: 10)
      #expect(files.map(\.path) == ["a.jpg"] && files.map(\.length) == [100])
    }

    @Test(arguments: [14, 15, 17]) func anOlderJournalGetsTheTables(_ version: Int) async throws {
      let folder = JournalFolder()
      try await folder.open().close()
      let old = try Database(folder.path)
      try old.execute("DROP TABLE unindexed; DROP TABLE taken; DROP TABLE names_index")
      if version == 15 {
        try old.execute(
          """
          CREATE TABLE unindexed(upload INTEGER PRIMARY KEY, modified INTEGER);
          CREATE TABLE taken(
            id INTEGER PRIMARY KEY, destination INTEGER NOT NULL, path BLOB NOT NULL, length INTEGER, modified INTEGER,
            indexed INTEGER NOT NULL, UNIQUE(destination, path)
          );
          """)
      }
      if version == 17 {
        try old.execute(
          """
          \(UnindexedTable.schema)
          CREATE TABLE names_index(
            id INTEGER PRIMARY KEY, destination INTEGER NOT NULL, path BLOB NOT NULL, location TEXT, sha256 BLOB NOT NULL
          );
          """)
      }
      try old.execute(
        """
        ALTER TABLE sealed DROP COLUMN algorithm; ALTER TABLE sealed RENAME COLUMN digest TO sha256;
        PRAGMA user_version=\(version)
        """)
      let journal = try await folder.open()
      let id = try await done(sealed("a.jpg"), in: journal)
      let destination = try #require(try await journal.sealedNames.destinations().keys.first)
      try await journal.sealedNames.indexed([id], in: index, at: destination)
      #expect(try await journal.sealedNames.sentIndexes(at: destination).count == 1)
    }

    @Test func eachPlaceKeepsItsKey() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      #expect(try await journal.sealedNames.key(at: "https://host.example/a/") == nil)
      let made = try await journal.sealedNames.keep(nil, at: "https://host.example/a/")
      let other = try await folder.open()
      #expect(try await other.sealedNames.key(at: "https://host.example/a/") == made)
      #expect(try await other.sealedNames.keep(nil, at: "https://host.example/a/") == made)
      #expect(try await other.sealedNames.keep(nil, at: "https://host.example/b/") != made)
      #expect(try await other.sealedNames.keep(made, at: "https://host.example/c/") == made)
      await journal.close()
      await other.close()
      #expect(try await folder.open().sealedNames.key(at: "https://host.example/a/") == made)
    }
  }
}
