import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// Tests entries that no longer exist and must not reappear as others.
  @Suite struct LeftoverTests {
    let folder = JournalFolder()

    @Test func aDroppedJournalGivesUpItsClaims() async throws {
      var journal: Journal? = try await folder.open()
      let id = try #require(try await journal?.claim().id)
      journal?.opened(id, session)
      try await journal?.flush()
      journal = nil
      let other = try await folder.open()
      // The task of a record may keep the journal open a moment longer.
      let clock = ContinuousClock()
      let deadline = clock.now + .seconds(10)
      var claim = try await other.claim()
      while claim.name == "busy", clock.now < deadline {
        try await clock.sleep(for: .milliseconds(5))
        claim = try await other.claim()
      }
      #expect(claim.name == "resume" && claim.entry?.session == session)
    }

    @Test func aNoteOnARemovedEntryMeetsNoOther() async throws {
      let journal = try await folder.open()
      let old = try #require(try await journal.claim(intent("old")).id)
      try await journal.remove([old])
      let new = try #require(try await journal.claim(intent("new")).id)
      journal.done(old, UploadResult())
      #expect(try await journal.entries(.done, limit: -1).isEmpty)
      #expect(try await journal.unfinished().map(\.id) == [new])
    }

    /// Two containers that share a volume see each other like this.
    @Test func anOwnerWronglyTakenForDeadSpoilsNothing() async throws {
      let away = try await folder.open(as: ProcessIdentity(pid: 1, boot: "another boot", start: 1))
      let id = try #require(try await away.claim().id)
      let here = try await folder.open()
      #expect(try await here.claim().name == "resume")
      away.failed(id, "too late")
      try await away.flush()
      #expect(try await here.only().state == .intent)
      #expect(try await here.only().owner == .current)
    }
  }
}
