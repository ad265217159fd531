import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// What is known of the ciphertext of sealed files that are done.
  struct Sealed {
    private let content = SealedContent(DigestValue(.xxh128, [1, 2, 3]), version: "\"tag\"")

    /// Returns the id of the entry.
    private func end(_ intent: JournalIntent, _ content: SealedContent?, session: Bool, in journal: Journal)
      async throws
      -> Int64
    {
      let id = try #require(try await journal.claim(intent, again: true).id)
      if session { journal.opened(id, UploadSession(state: ["url": "https://host.example/1"])) }
      journal.done(id, UploadResult(), keepsChecksums: false, replaces: true, sealed: content)
      try await journal.flush()
      return id
    }

    @Test(arguments: [false, true]) func theContentStaysWithTheUpload(_ hasSession: Bool) async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let id = try await end(intent("a.jpg.age"), content, session: hasSession, in: journal)
      let plain = try await end(intent("b.jpg"), nil, session: hasSession, in: journal)
      // The journal is not closed, as after a kill.
      let other = try await folder.open()
      #expect(try await other.seals.contents(of: [id, plain]) == [id: content])
      // The same file is sent again, and nothing is known of its ciphertext.
      #expect(try await end(intent("a.jpg.age"), nil, session: hasSession, in: journal) == id)
      #expect(try await other.seals.contents(of: [id, plain]) == [:])
    }

    @Test func aJournalOfVersion13GetsTheTable() async throws {
      let folder = JournalFolder()
      try await folder.open().close()
      try Database(folder.path).execute("DROP TABLE sealed; PRAGMA user_version=13")
      let journal = try await folder.open()
      let id = try await end(intent("a.jpg.age"), content, session: false, in: journal)
      #expect(try await journal.seals.contents(of: [id]) == [id: content])
    }

    /// Many ends are written by one statement.
    @Test func eachOfManyKeepsItsOwnContent() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let names = (0..<5).map { "\($0).jpg.age" }
      let ids = try await journal.claim(names.map { intent($0) }, destination: try await journal.destinationID(.tus))
        .compactMap(
          \.newID)
      #expect(ids.count == names.count)
      for id in ids { journal.sealing(id, "box") }
      try await journal.flush()
      // The second one is not sealed, and the fourth one stays unfinished.
      let ended = ids.enumerated().filter { $0.offset != 3 }
      for (place, id) in ended {
        let content = place == 1 ? nil : SealedContent(DigestValue(.xxh128, [UInt8(place)]), version: nil)
        journal.done(
          id, UploadResult(location: intent(names[place]).target), keepsChecksums: false, replaces: true,
          sealed: content)
      }
      try await journal.flush()
      let contents = try await journal.seals.contents(of: ids)
      #expect(contents.count == 3 && contents[ids[0]]?.digest?.bytes == [0] && contents[ids[4]]?.digest?.bytes == [4])
      for (place, id) in ids.enumerated() {
        #expect(try await journal.seals.box(of: id) == (place == 3 ? "box" : nil), "\(place)")
      }
      #expect(try await journal.unfinished().map(\.id) == [ids[3]])
    }

    /// Digests of earlier versions stay what they are, and are never compared as those of another algorithm.
    @Test(arguments: [14, 18]) func theDigestsOfAnOlderJournalAreOfSHA256(_ version: Int) async throws {
      let folder = JournalFolder()
      let first = try await folder.open()
      let id = try await end(intent("a.jpg.age"), content, session: false, in: first)
      let without = try await end(
        intent("b.jpg.age"), SealedContent(nil, version: "\"tag\""), session: false, in: first)
      await first.close()
      try Database(folder.path).execute(
        """
        ALTER TABLE sealed DROP COLUMN algorithm; ALTER TABLE sealed RENAME COLUMN digest TO sha256;
        PRAGMA user_version=\(version)
        """)
      let contents = try await folder.open().seals.contents(of: [id, without])
      #expect(contents[id] == SealedContent(DigestValue(.sha256, [1, 2, 3]), version: "\"tag\""))
      #expect(contents[without] == SealedContent(nil, version: "\"tag\""))
    }

    /// A later version of the program may have written it.
    @Test func theDigestOfAnUnknownAlgorithmIsNone() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let id = try await end(intent("a.jpg.age"), content, session: false, in: journal)
      try Database(folder.path).execute("UPDATE sealed SET algorithm = 'none of these'")
      #expect(try await journal.seals.contents(of: [id]) == [id: SealedContent(nil, version: "\"tag\"")])
    }
  }
}
