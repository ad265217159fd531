import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// What is known of the ciphertext of sealed files that are done.
  struct Sealed {
    private let content = SealedContent(sha256: [1, 2, 3], version: "\"tag\"")

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
      #expect(try await other.sealedContents(of: [id, plain]) == [id: content])
      // The same file is sent again, and nothing is known of its ciphertext.
      #expect(try await end(intent("a.jpg.age"), nil, session: hasSession, in: journal) == id)
      #expect(try await other.sealedContents(of: [id, plain]) == [:])
    }

    @Test func aJournalOfVersion13GetsTheTable() async throws {
      let folder = JournalFolder()
      try await folder.open().close()
      try Database(folder.path).execute("DROP TABLE sealed; PRAGMA user_version=13")
      let journal = try await folder.open()
      let id = try await end(intent("a.jpg.age"), content, session: false, in: journal)
      #expect(try await journal.sealedContents(of: [id]) == [id: content])
    }
  }
}
