import BlobUpload
import Blobs
import Testing

extension JournalTests {
  @Suite struct Claims {
    let folder = JournalFolder()

    @Test func anUnknownFileIsClaimedAsFresh() async throws {
      let journal = try await folder.open()
      let claim = try await journal.claim()
      #expect(claim.name == "fresh")
      let entry = try await journal.only()
      #expect(entry.id == claim.id)
      #expect(entry.intent == intent())
      #expect(entry.state == .intent)
      #expect(entry.session == nil)
      #expect(entry.destination == .tus)
      #expect(entry.owner == .current)
      #expect(entry.created > 1_700_000_000)
      await journal.close()
    }

    @Test func answersAreInTheOrderOfTheIntents() async throws {
      let journal = try await folder.open()
      let first = try await journal.claim(intent("b"))
      journal.done(try #require(first.id), UploadResult())
      let id = try await journal.destinationID(.tus)
      let claims = try await journal.claim(["a", "b", "c"].map { intent($0) }, destination: id)
      #expect(claims.map(\.name) == ["fresh", "done", "fresh"])
      await journal.close()
    }

    @Test func knownAndUnknownFilesAreClaimedTogether() async throws {
      let journal = try await folder.open()
      let known = ["0", "3", "20", "21", "99"]
      for name in known { journal.done(try #require(try await journal.claim(intent(name)).id), UploadResult()) }
      var names = (0..<100).map { "\($0)" }
      names.insert("50", at: 70)
      let id = try await journal.destinationID(.tus)
      let claims = try await journal.claim(names.map { intent($0) }, destination: id)
      let wanted = names.enumerated().map { $0 == 70 ? "busy" : known.contains($1) ? "done" : "fresh" }
      #expect(claims.map(\.name) == wanted)
      let made = zip(names, claims).filter { $1.name == "fresh" }.map { ($1.id, $0) }
      let entries = try await journal.unfinished()
      #expect(entries.count == 95 && made.count == 95)
      #expect(zip(entries, made).allSatisfy { $0.id == $1.0 && $0.intent == intent($1.1) })
      await journal.close()
    }

    @Test func unfinishedOfTheSameVersionGoesOnWithItsSession() async throws {
      try await leave { journal, id in
        journal.opened(id, session)
        journal.acknowledged(id, 40)
        journal.released(id)
      }
      let journal = try await folder.open()
      let claim = try await journal.claim()
      #expect(claim.name == "resume")
      #expect(claim.entry?.session == session)
      #expect(claim.entry?.acknowledged == 40)
      #expect(claim.entry?.state == .open)
      await journal.close()
    }

    @Test func anIntentThatNeverBeganIsResumedWithoutSession() async throws {
      try await leave { _, _ in }
      let journal = try await folder.open()
      let claim = try await journal.claim()
      #expect(claim.name == "resume")
      #expect(claim.entry?.session == nil)
      await journal.close()
    }

    @Test func afterAFailureTheSessionIsKeptAndTheErrorGoes() async throws {
      try await leave { journal, id in
        journal.opened(id, session)
        journal.failed(id, "host.example: connection refused")
      }
      let journal = try await folder.open()
      #expect(try await journal.only().error == "host.example: connection refused")
      #expect(try await journal.only().state == .failed)
      let claim = try await journal.claim()
      #expect(claim.entry?.session == session)
      let entry = try await journal.only()
      #expect(entry.state == .open)
      #expect(entry.error == nil)
      await journal.close()
    }

    @Test(arguments: [("2", "i", 100), ("1", "i", 99)] as [(String, String, Int64)])
    func anotherVersionOfTheUnfinishedStartsAnew(version: String, instance: String, length: Int64)
      async throws
    {
      try await leave { journal, id in
        journal.opened(id, session)
        journal.receipt(id, PartReceipt(number: 1, start: 0, held: 50))
        journal.acknowledged(id, 50)
      }
      let journal = try await folder.open()
      let new = intent(version: version, instance: instance, length: length)
      let claim = try await journal.claim(new)
      #expect(claim.name == "replaced")
      #expect(claim.entry?.session == session)
      #expect(claim.entry?.isLeftover == true && claim.entry?.intent.validator == intent().validator)
      let entry = try await journal.only()
      #expect(entry.intent == new)
      #expect(entry.state == .intent)
      #expect(entry.session == nil)
      #expect(entry.acknowledged == 0)
      journal.opened(try #require(claim.id), session)
      #expect(try await journal.only().receipts == [])
      await journal.close()
    }

    @Test(arguments: ["i", "another inode"]) func aStoredFileIsClaimedAsDone(instance: String) async throws {
      try await leave { journal, id in journal.done(id, UploadResult(location: "https://host.example/17")) }
      let journal = try await folder.open()
      let claim = try await journal.claim(intent(instance: instance))
      #expect(claim.name == "done")
      #expect(claim.entry?.location == "https://host.example/17")
      #expect(claim.entry?.acknowledged == 100)
      #expect(claim.entry?.owner == nil)
      await journal.close()
    }

    @Test func anotherVersionOfWhatIsDoneStartsAnew() async throws {
      try await leave { journal, id in journal.done(id, UploadResult()) }
      let journal = try await folder.open()
      let claim = try await journal.claim(intent(version: "2"))
      #expect(claim.name == "replaced")
      #expect(claim.entry?.state == .done)
      #expect(try await journal.only().intent.validator?.version == "2")
      await journal.close()
    }

    @Test func aStoredFileIsClaimedAsFreshIfTheCallerAsksForIt() async throws {
      try await leave { journal, id in journal.done(id, UploadResult()) }
      let journal = try await folder.open()
      #expect(try await journal.claim(again: true).name == "fresh")
      #expect(try await journal.only().state == .intent)
      await journal.close()
    }

    @Test(arguments: [("1", nil), (nil, "1"), (nil, nil)] as [(String?, String?)])
    func withoutAValidatorNothingIsTakenForTheSame(before: String?, now: String?) async throws {
      for isDone in [false, true] {
        try await leave(intent("\(isDone)", version: before)) { journal, id in
          if isDone { journal.done(id, UploadResult()) }
        }
        let journal = try await folder.open()
        #expect(try await journal.claim(intent("\(isDone)", version: now)).name == "replaced")
        await journal.close()
      }
    }

    /// The caller gets the old entry, so that it can delete the upload if it supports the protocol.
    @Test func aSessionOfAnotherProtocolIsLeftBehind() async throws {
      try await leave { journal, id in
        journal.opened(id, session)
        journal.acknowledged(id, 40)
      }
      let journal = try await folder.open()
      let claim = try await journal.claim(at: .put)
      #expect(claim.name == "replaced")
      #expect(claim.entry?.session == session)
      let entry = try await journal.only()
      #expect(entry.destination == .put)
      #expect(entry.session == nil)
      #expect(entry.state == .intent)
      await journal.close()
    }

    @Test func theSameFileToTwoTargetsIsTwoUploads() async throws {
      let journal = try await folder.open()
      var other = intent()
      other.target += "?copy"
      let id = try await journal.destinationID(.tus)
      #expect(try await journal.claim([intent(), other], destination: id).map(\.name) == ["fresh", "fresh"])
      await journal.close()
    }

    @Test func theSameUploadTwiceInABatchIsClaimedOnce() async throws {
      let journal = try await folder.open()
      let id = try await journal.destinationID(.tus)
      let claims = try await journal.claim([intent(), intent()], destination: id)
      #expect(claims.map(\.name) == ["fresh", "busy"])
      #expect(claims[1].owner == .current)
      await journal.close()
    }

    @Test func entriesAreClaimedAsTheyAre() async throws {
      var ids: [Int64] = []
      for name in ["a", "b"] {
        ids.append(
          try await leave(intent(name)) { journal, id in
            if name == "b" { journal.done(id, UploadResult()) } else { journal.opened(id, session) }
          })
      }
      let journal = try await folder.open()
      let claims = try await journal.claim(entries: ids)
      #expect(claims.map(\.name) == ["resume", "done"])
      #expect(claims[0].entry?.session == session)
      #expect(try await journal.claim(entries: ids).map(\.name) == ["busy", "done"])
      await journal.close()
    }

    @Test func aRemovedEntryCannotBeClaimed() async throws {
      let id = try await leave { _, _ in }
      let journal = try await folder.open()
      try await journal.remove([id])
      await #expect(throws: JournalError.self) { try await journal.claim(entries: [id]) }
      #expect(try await journal.unfinished().isEmpty)
      #expect(try await journal.summary().isEmpty)
      await journal.close()
    }

    @Test(arguments: [
      [0x2F, 0xFF, 0xFE], [0x2F, 0x61, 0x0A, 0x62], Array("/with 'quotes'; DROP TABLE upload".utf8),
      [0x2F] + [UInt8](repeating: 0xE2, count: 4000),
    ])
    func pathsAreBytes(bytes: [UInt8]) async throws {
      var odd = intent()
      odd.source = BytePath(bytes)
      odd.path = BytePath(bytes.dropFirst())
      try await leave(odd) { _, _ in }
      let journal = try await folder.open()
      #expect(try await journal.only().intent == odd)
      #expect(try await journal.claim(odd).name == "resume")
      await journal.close()
    }

    @Test(arguments: [nil, 0, .max] as [Int64?]) func anyLengthIsKept(length: Int64?) async throws {
      try await leave(intent(length: length)) { _, _ in }
      let journal = try await folder.open()
      #expect(try await journal.only().intent.length == length)
      #expect(try await journal.claim(intent(length: length)).name == "resume")
      await journal.close()
    }

    /// Another source was sent under the same name, so the first one is no longer there.
    @Test(arguments: [true, false], [true, false])
    func aFileReplacedByAnotherSourceIsNotClaimedAsDone(_ isBegunOnly: Bool, _ together: Bool) async throws {
      let (mine, other) = (intent("a.jpg"), intent("a.jpg", from: "/other/a.jpg"))
      let journal = try await folder.open()
      journal.done(try #require(try await journal.claim(mine).id), UploadResult())
      #expect(try await journal.claim(mine).name == "done")
      // An upload that may overwrite a file may do so as soon as it has started.
      let at = isBegunOnly ? JournalDestination.put : .tus
      let more = together ? [intent("b.jpg"), intent("c.jpg")] : []
      let claims = try await journal.claim([other] + more, destination: try await journal.destinationID(at))
      #expect(claims.map(\.name) == Array(repeating: "fresh", count: claims.count))
      if isBegunOnly {
        journal.failed(try #require(claims[0].id), "cut")
      } else {
        #expect(try await journal.claim(mine).name == "done")
        for id in claims.compactMap(\.id) { journal.done(id, UploadResult(location: other.target)) }
      }
      #expect(try await journal.claim(mine).name == "fresh")
      #expect(
        try await journal.summary().filter { $0.state == .done }.map(\.count) == (isBegunOnly ? [] : [claims.count]))
      await journal.close()
    }

    /// Claims an upload, records notes with `note`, and closes the journal.
    @discardableResult
    func leave(_ intent: JournalIntent = intent(), _ note: (Journal, Int64) -> Void) async throws -> Int64 {
      let journal = try await folder.open()
      let id = try #require(try await journal.claim(intent).id)
      note(journal, id)
      await journal.close()
      return id
    }
  }
}
