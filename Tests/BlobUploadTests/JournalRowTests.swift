import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// Rows of databases that have names: a row that got another number is the same source.
  @Suite struct Rows {
    let folder = JournalFolder()

    private func row(
      _ number: Int, _ name: String? = "a", table: String = "t", at target: String = "a.jpg", version: String = "1"
    ) -> JournalIntent {
      let named = name.map { "&name=n&named=\($0)" } ?? ""
      return intent(
        target, version: version, from: BytePath("sqlite:/x.db?table=\(table)&column=d&row=\(number)\(named)"))
    }

    private func unfinished(_ journal: Journal) async throws -> [JournalEntry] {
      try await journal.unfinished().filter { !$0.isLeftover }
    }

    private func interrupt(_ intent: JournalIntent, _ journal: Journal, hasSession: Bool) async throws -> Int64 {
      let id = try #require(try await journal.claim(intent).id)
      if hasSession { journal.opened(id, session) }
      journal.released(id)
      try await journal.flush()
      return id
    }

    /// What the server has of the old upload is deleted there.
    @Test(arguments: [false, true], [false, true])
    func theOldNumberIsForgottenOnceTheNewOneIsSent(_ hasSession: Bool, _ isStored: Bool) async throws {
      let journal = try await folder.open()
      _ = try await interrupt(row(1), journal, hasSession: hasSession)
      let new = try #require(try await journal.claim(row(2)).id)
      try await journal.flush()
      #expect(try await unfinished(journal).count == 2)
      journal.done(new, UploadResult(), replaces: isStored)
      #expect(try await unfinished(journal).isEmpty)
      let left = try await journal.leftovers(at: journal.destinationID(.tus))
      #expect(left.count == (hasSession ? 1 : 0))
      let claims = try await journal.claim(entries: left)
      #expect(claims.allSatisfy { $0.entry?.session == session })
      #expect(try await journal.entries(.done, limit: -1).map(\.id) == [new])
    }

    /// A journal of an earlier version has such entries beside the one that is done.
    @Test func theOldNumberIsForgottenWhenTheNewOneWasSentBefore() async throws {
      let journal = try await folder.open()
      let new = try #require(try await journal.claim(row(2)).id)
      journal.done(new, UploadResult())
      _ = try await interrupt(row(1), journal, hasSession: true)
      #expect(try await journal.claim(row(2)).name == "done")
      #expect(try await unfinished(journal).isEmpty)
    }

    @Test func otherSourcesStay() async throws {
      let journal = try await folder.open()
      var others: [Int64] = []
      for other in [
        row(1, "b"), row(1, nil), row(1, table: "u"), row(1, at: "b.jpg"), intent("a.jpg", from: "/x/a.jpg"),
      ] { others.append(try await interrupt(other, journal, hasSession: true)) }
      let new = try #require(try await journal.claim(row(2)).id)
      journal.done(new, UploadResult())
      #expect(try await unfinished(journal).map(\.id) == others)
      let file = try #require(try await journal.claim(intent("a.jpg", from: "/y/a.jpg")).id)
      journal.done(file, UploadResult())
      #expect(try await unfinished(journal).map(\.id) == others)
    }

    @Test func aRowThatALiveProcessSendsStays() async throws {
      let process = IdleProcess()
      let theirs = try await folder.open(as: process.mark)
      let mine = try await folder.open()
      let id = try await mine.destinationID(.tus)
      let old = try await theirs.claim([row(1)], destination: id, sends: false)[0].id
      let new = try #require(try await mine.claim([row(2)], destination: id, sends: false)[0].id)
      mine.done(new, UploadResult())
      #expect(try await unfinished(mine).map(\.id) == [old])
      await theirs.close()
      await mine.close()
    }
  }
}
