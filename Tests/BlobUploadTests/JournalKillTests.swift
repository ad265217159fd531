import BlobUpload
import Blobs
import Platform
import Testing

extension JournalTests {
  @Suite struct Kills {
    @Test func aKillTakesNothingThatWasClaimedOrFlushed() async throws {
      let folder = JournalFolder(for: "flushed")
      await #expect(processExitsWith: .signal(SIGKILL)) {
        let journal = try await Journal(at: JournalFolder.pathInParent("flushed"))
        let id = try await journal.destinationID(.tus)
        let ids = try await journal.claim((0..<500).map { intent("\($0)") }, destination: id).compactMap(\.id)
        for id in ids.prefix(300) { journal.done(id, UploadResult()) }
        journal.opened(ids[300], session)
        try await journal.flush()
        // Only these records may be lost.
        for id in ids.suffix(100) { journal.done(id, UploadResult()) }
        kill(getpid(), SIGKILL)
      }
      let journal = try await folder.open()
      #expect(
        try await journal.entries(.done, limit: -1).prefix(300).map(\.intent.path.description)
          == (0..<300).map { "\($0)" })
      let unfinished = try await journal.unfinished()
      #expect((100...200).contains(unfinished.count))
      #expect(unfinished.first?.session == session)
      #expect(unfinished.allSatisfy { $0.owner == nil })
      #expect(try await journal.claim(entries: unfinished.map(\.id)).allSatisfy { $0.name == "resume" })
      #expect(try await journal.summary().map(\.count).reduce(0, +) == 500)
      await journal.close()
    }

    @Test func aKillAtAnyInstantLeavesAJournalThatOpens() async throws {
      let folder = JournalFolder(for: "any")
      var most = 0
      for _ in 0..<5 {
        await #expect(processExitsWith: .signal(SIGKILL)) {
          // The kill may happen at any time: during the creation of the schema, a commit or a checkpoint.
          let microseconds = UInt32.random(in: 0..<100_000)
          SystemThread.start("killer") {
            usleep(microseconds)
            kill(getpid(), SIGKILL)
          }
          let journal = try await Journal(at: JournalFolder.pathInParent("any"))
          let id = try await journal.destinationID(.tus)
          for batch in 0... {
            let claims = try await journal.claim(
              (0..<64).map { intent("\(microseconds) \(batch) \($0)") }, destination: id)
            for case let id? in claims.map(\.id) { journal.done(id, UploadResult()) }
          }
        }
        let journal = try await folder.open()
        let listed = try await journal.entries(.done, limit: -1).count + journal.unfinished().count
        #expect(try await journal.summary().map(\.count).reduce(0, +) == listed)
        // A batch is recorded completely or not at all.
        #expect(listed % 64 == 0)
        #expect(listed >= most, "what an earlier run had committed is gone")
        most = listed
        await journal.close()
      }
      #expect(most > 0)
    }
  }
}
