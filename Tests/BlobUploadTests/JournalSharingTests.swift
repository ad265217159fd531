import BlobSQLite
import BlobUpload
import Blobs
import Glibc
import Testing

extension JournalTests {
  @Suite struct Sharing {
    let folder = JournalFolder()

    @Test func ofTwoProcessesEachClaimsWhatTheOtherHasNot() async throws {
      let process = IdleProcess()
      let journals = [try await folder.open(), try await folder.open(as: process.mark)]
      let marks = [ProcessMark.current, process.mark]
      let intents = (0..<1000).map { intent("\($0)") }
      let folder = folder
      let claims = try await withThrowingTaskGroup(of: (Int, [JournalClaim]).self) { group in
        for (index, journal) in journals.enumerated() {
          group.addTask {
            let id = try await journal.destinationID(.tus)
            var claims: [JournalClaim] = []
            for start in stride(from: 0, to: intents.count, by: 20) {
              claims += try await journal.claim(Array(intents[start..<start + 20]), destination: id)
            }
            return (index, claims)
          }
        }
        return try await group.reduce(into: [[], []]) { $0[$1.0] = $1.1 }
      }
      for (mine, theirs) in zip(claims[0], claims[1]) {
        #expect([mine.name, theirs.name].sorted() == ["busy", "fresh"])
        #expect(mine.owner == nil || mine.owner == marks[1])
        #expect(theirs.owner == nil || theirs.owner == marks[0])
      }
      #expect(try await journals[0].summary().map(\.count) == [1000])
      for journal in journals { await journal.close() }
      _ = folder
    }

    @Test func aDeadOwnersClaimIsTakenOver() async throws {
      let process = IdleProcess()
      let first = try await folder.open(as: process.mark)
      let id = try #require(try await first.claim().id)
      first.opened(id, session)
      try await first.flush()

      let second = try await folder.open()
      #expect(try await second.claim().owner == process.mark)
      #expect(try await second.only().owner == process.mark)
      process.end()
      #expect(try await second.only().owner == nil)
      let claim = try await second.claim()
      #expect(claim.name == "resume")
      #expect(claim.entry?.session == session)
      #expect(try await second.only().owner == .current)

      // Should the dead speak after all, it is no longer heard.
      first.done(id, UploadResult())
      try await first.flush()
      #expect(try await second.only().state == .open)
      await first.close()
      #expect(try await second.only().owner == .current)
      await second.close()
    }

    @Test func theDeadAreForgottenWithTheNextClaim() async throws {
      // Kept: a journal that is dropped gives up its claims.
      var journals: [Journal] = []
      for number in 0..<3 {
        journals.append(try await folder.open(as: IdleProcess.dead()))
        _ = try await journals[number].claim(intent("\(number)"))
      }
      let journal = try await folder.open()
      _ = try await journal.claim(intent("new"))
      let database = try Database(folder.path)
      #expect(try database.statement("SELECT count(*) FROM process").first { $0.int(0) } == 1)
      #expect(try database.statement("SELECT count(owner) FROM upload").first { $0.int(0) } == 1)
      await journal.close()
      #expect(try database.statement("SELECT count(*) FROM process").first { $0.int(0) } == 0)
    }

    @Test func closingGivesUpItsOwnClaimsAndNoOthers() async throws {
      let first = try await folder.open()
      let second = try await folder.open()
      _ = try await first.claim(intent("a"))
      _ = try await second.claim(intent("b"))
      await first.close()
      #expect(try await second.unfinished().map(\.owner) == [nil, .current])
      await second.close()
    }

    @Test func equalDestinationsHaveOneNumber() async throws {
      let first = try await folder.open()
      let second = try await folder.open()
      let id = try await first.destinationID(.tus)
      #expect(try await second.destinationID(.tus) == id)
      #expect(try await second.destinationID(.put) != id)
      await first.close()
      await second.close()
    }

    @Test func theSummaryFollowsEveryChange() async throws {
      let journal = try await folder.open()
      let tus = try await journal.destinationID(.tus)
      let put = try await journal.destinationID(.put)
      let ids = try await journal.claim(
        [intent("a"), intent("b", length: 7), intent("c", length: nil)],
        destination: tus
      ).compactMap(\.id)
      journal.done(ids[0], UploadResult())
      journal.opened(ids[1], session)
      journal.acknowledged(ids[1], 3)
      journal.failed(ids[2], "no")
      var sums = try await journal.summary()
      #expect(sums.map(\.state) == [.open, .done, .failed])
      #expect(sums.map(\.count) == [1, 1, 1])
      #expect(sums.map(\.bytes) == [7, 100, 0])
      #expect(sums.map(\.acknowledged) == [3, 100, 0])
      #expect(sums.allSatisfy { $0.destination == .tus })

      journal.released(ids[1])
      try await journal.remove([ids[0]])
      _ = try await journal.claim([intent("b", length: 7)], destination: put)
      sums = try await journal.summary()
      #expect(sums.map(\.destination) == [.tus, .put])
      #expect(sums.map(\.state) == [.failed, .intent])
      #expect(sums.map(\.bytes) == [0, 7])
      #expect(sums.map(\.acknowledged) == [0, 0])
      await journal.close()
    }

    @Test func theLatestEntriesAreListedInOrder() async throws {
      let journal = try await folder.open()
      for name in ["a", "b", "c"] { journal.failed(try #require(try await journal.claim(intent(name)).id), "no") }
      #expect(try await journal.entries(.failed, limit: 2).map(\.intent.path) == ["b", "c"])
      #expect(try await journal.entries(.failed, limit: -1).count == 3)
      #expect(try await journal.entries(.done, limit: 2).isEmpty)
      await journal.close()
    }

    @Test func aJournalThatCannotBeIsRefusedByName() async throws {
      let error = await #expect(throws: JournalError.self) { try await Journal(at: "/dev/null/x/journal") }
      #expect(error?.message.contains("/dev/null/x/journal: Not a directory") == true)
    }

    @Test(.enabled(if: geteuid() != 0, "root may write anywhere"))
    func aReadOnlyFolderIsRefusedByName() async throws {
      _ = folder.folder.withCString { chmod($0, 0o500) }
      let error = await #expect(throws: JournalError.self) { try await folder.open() }
      #expect(error?.message.contains("\(folder.path): Permission denied") == true)
      _ = folder.folder.withCString { chmod($0, 0o700) }
    }

    @Test func aNewerJournalIsRefused() async throws {
      await (try await folder.open()).close()
      try Database(folder.path).execute("PRAGMA user_version=1000")
      let error = await #expect(throws: JournalError.self) { try await folder.open() }
      #expect(error?.message.contains("use a newer program") == true)
    }
  }
}
