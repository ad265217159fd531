import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  @Suite struct Notes {
    let folder = JournalFolder()

    @Test func flushedEntriesAreSeenByAnotherProcess() async throws {
      let journal = try await folder.open()
      let other = try await folder.open()
      let names = (0..<300).map { "\($0)" }
      let claims = try await journal.claim(
        names.map { intent($0) }, destination: try await journal.destinationID(.tus))
      for claim in claims { journal.done(try #require(claim.id), UploadResult(location: "https://host.example/x")) }
      try await journal.flush()
      let done = try await other.entries(.done, limit: -1)
      #expect(done.map(\.intent.path) == names.map { BytePath($0) })
      #expect(done.allSatisfy { $0.location == "https://host.example/x" })
      await journal.close()
      await other.close()
    }

    @Test func lazyNotesAreWrittenWithoutBeingAskedFor() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.done(id, UploadResult())
      try await seen { $0.state == .done }
      await journal.close()
    }

    @Test func urgentNotesAreWrittenWithoutBeingAskedFor() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      try await seen { $0.session == session }
      journal.receipt(id, PartReceipt(number: 2, start: 50, held: 50, state: ["etag": "\"x\""]))
      try await seen { $0.receipts.count == 1 }
      journal.restarted(id)
      try await seen { $0.session == nil }
      await journal.close()
    }

    @Test func theOrderOfNotesIsKept() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      journal.acknowledged(id, 10)
      journal.acknowledged(id, 20)
      journal.restarted(id)
      #expect(try await journal.only().acknowledged == 0)
      journal.opened(id, session)
      journal.acknowledged(id, 30)
      journal.restarted(id)
      journal.acknowledged(id, 5)
      journal.acknowledged(id, 7)
      journal.opened(id, session)
      let entry = try await journal.only()
      #expect(entry.acknowledged == 7)
      #expect(entry.session == session)
      await journal.close()
    }

    @Test func aReceiptTakesThePlaceOfAnEarlierOne() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      let second = PartReceipt(number: 2, start: 50, held: 50)
      let first = PartReceipt(number: 1, start: 0, held: 50, state: ["etag": "new"])
      journal.receipt(id, PartReceipt(number: 1, start: 0, held: 20, state: ["etag": "old"]))
      journal.receipt(id, second)
      journal.receipt(id, first)
      #expect(try await journal.only().receipts == [first, second])
      // A refreshed session belongs to the same upload.
      journal.opened(id, UploadSession(state: ["url": "other"]))
      #expect(try await journal.only().receipts == [first, second])
      await journal.close()
    }

    @Test func aFinishedUploadHasNeitherSessionNorReceipts() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.opened(id, session)
      journal.receipt(id, PartReceipt(number: 1, start: 0, held: 50))
      journal.done(id, UploadResult(location: intent().target))
      let entry = try #require(try await journal.entries(.done, limit: 1).first)
      #expect(entry.session == nil)
      #expect(entry.receipts == [])
      #expect(entry.location == intent().target)
      await journal.close()
      let database = try Database(folder.path)
      #expect(try database.statement("SELECT count(*) FROM receipt").first { $0.int(0) } == 0)
    }

    /// The server announces an upload and has stored it a moment later, so that both notes are written together.
    @Test func anUploadThatIsDoneAtOnceLeavesNoSession() async throws {
      let journal = try await folder.open()
      let names = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
      let claims = try await journal.claim(
        names.map { intent($0) }, destination: try await journal.destinationID(.tus))
      let ids = try claims.map { try #require($0.id) }
      for (id, name) in zip(ids, names) {
        journal.opened(id, session)
        journal.sending(id, from: 0, key: SentRange.noKey)(70, SentRange.noValue)
        journal.acknowledged(id, 70)
        if name != "c.jpg" { journal.done(id, UploadResult(location: intent(name).target)) }
      }
      journal.failed(ids[3], "refused")
      try await journal.flush()
      let entries = try await journal.entries(.done, limit: -1)
      #expect(entries.map(\.id) == [ids[0], ids[1], ids[3]])
      #expect(entries.allSatisfy { $0.session == nil && $0.acknowledged == 100 && $0.sent.isEmpty })
      let open = try await journal.only()
      #expect(open.id == ids[2] && open.session == session && open.acknowledged == 70)
      #expect(open.sent.map(\.end) == [70])
      await journal.close()
    }

    /// The ends are recorded in any order, independent of the entries between them.
    @Test func endsOfNeighboursAreKeptOneByOne() async throws {
      let journal = try await folder.open()
      let other = try await folder.open()
      let names = (10..<60).map { "\($0)" }
      let claims = try await journal.claim(
        names.map { intent($0) }, destination: try await journal.destinationID(.tus))
      let ids = try claims.map { try #require($0.id) }
      try await other.remove([ids[5]])
      journal.opened(ids[20], session)
      for (id, name) in zip(ids, names).reversed() {
        switch name {
        case "19": journal.failed(id, "refused")
        case "49": continue
        default: journal.done(id, UploadResult(location: intent(name).target))
        }
      }
      journal.done(ids[7], UploadResult(location: "https://host.example/late"))
      journal.restarted(ids[8])
      try await journal.flush()
      let done = try await other.entries(.done, limit: -1)
      #expect(done.map(\.intent.path) == names.filter { !["15", "18", "19", "49"].contains($0) }.map { BytePath($0) })
      #expect(done.allSatisfy { $0.location == $0.intent.target && $0.acknowledged == 100 && $0.session == nil })
      #expect(try await other.unfinished().map(\.state) == [.intent, .failed, .intent])
      let sum = try #require(try await other.summary().first { $0.state == .done })
      #expect(sum.count == 46 && sum.bytes == 4600)
      await journal.close()
      await other.close()
    }

    @Test func aNoteForWhatIsNotClaimedChangesNothing() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.done(id, UploadResult())
      journal.opened(id, session)
      journal.failed(id, "too late")
      journal.acknowledged(99, 1)
      #expect(try await journal.unfinished().isEmpty)
      let other = try await folder.open()
      other.restarted(id)
      #expect(try await other.unfinished().isEmpty)
      await journal.close()
      await other.close()
    }

    @Test func restartingALostUploadClaimsItsEntry() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      journal.done(id, UploadResult())
      #expect(try await journal.claim().name == "done")
      journal.restarted(id)
      #expect(try await journal.claim().name == "busy")
      journal.opened(id, session)
      #expect(try await journal.only().session == session)
      await journal.close()
    }

    @Test func recordsThatCannotBeWrittenAreReportedAndKept() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      let saboteur = try Database(folder.path)
      try saboteur.execute(
        "CREATE TRIGGER saboteur BEFORE UPDATE ON upload BEGIN SELECT RAISE(ABORT, 'no space left'); END")
      journal.opened(id, session)
      for _ in 0..<2 {
        let error = await #expect(throws: JournalError.self) { try await journal.flush() }
        #expect(error?.message.contains("no space left") == true)
        #expect(error?.message.contains(folder.path.description) == true)
      }
      await #expect(throws: JournalError.self) { try await journal.claim(intent("other")) }
      try saboteur.execute("DROP TRIGGER saboteur")
      try await journal.flush()
      #expect(try await journal.only().session == session)
      await journal.close()
    }

    @Test func aClosedJournalSaysSo() async throws {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim().id)
      await journal.close()
      await journal.close()
      journal.done(id, UploadResult())
      let error = await #expect(throws: JournalError.self) { try await journal.flush() }
      #expect(error?.message.contains("closed") == true)
    }

    /// Waits until another connection sees the only entry in this state.
    private func seen(_ isRight: (JournalEntry) -> Bool) async throws {
      let other = try await folder.open()
      for _ in 0..<500 {
        let entries = try await other.unfinished() + other.entries(.done, limit: 1)
        if entries.contains(where: isRight) { return await other.close() }
        try await Task.sleep(for: .milliseconds(10))
      }
      Issue.record("the note was not written within 5 seconds")
    }
  }
}
