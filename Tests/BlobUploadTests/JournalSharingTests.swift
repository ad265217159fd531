import BlobSQLite
import BlobUpload
import Blobs
import Platform
import Testing

extension JournalTests {
  @Suite struct Sharing {
    let folder = JournalFolder()

    @Test func twoProcessesClaimDifferentFiles() async throws {
      let process = IdleProcess()
      let journals = [try await folder.open(), try await folder.open(as: process.mark)]
      let marks = [ProcessIdentity.current, process.mark]
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

    /// The picture is busy, so the film is left to the same process, and can be claimed there. What is done stays done.
    @Test func theFilesOfOnePhotoAreClaimedTogether() async throws {
      let process = IdleProcess()
      let (mine, theirs) = (try await folder.open(), try await folder.open(as: process.mark))
      let id = try await mine.destinationID(.tus)
      var photo = ["a.jpg", "a.mov", "a.xmp"].map { intent($0) }
      for index in photo.indices { photo[index].relatives.group = "/gallery/a" }
      let sidecar = try #require(try await mine.claim([photo[2]], destination: id)[0].id)
      mine.done(sidecar, UploadResult())
      try await mine.flush()
      let picture = try #require(try await theirs.claim([photo[0]], destination: id)[0].id)
      #expect(
        try await mine.claim(photo + [intent("b.jpg")], destination: id).map(\.name) == [
          "busy", "busy", "done", "fresh",
        ])
      #expect(try await theirs.claim([photo[1]], destination: id)[0].name == "fresh")
      theirs.released(picture)
      try await theirs.flush()
      #expect(try await mine.claim(photo, destination: id).map(\.name) == ["busy", "busy", "done"])
      await theirs.close()
      #expect(try await mine.claim(photo, destination: id).map(\.name) == ["resume", "resume", "done"])
      await mine.close()
      process.end()
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

      // Records of an owner that was believed dead are ignored.
      first.done(id, UploadResult())
      try await first.flush()
      #expect(try await second.only().state == .open)
      await first.close()
      #expect(try await second.only().owner == .current)
      await second.close()
    }

    @Test func theDeadAreForgottenWithTheNextClaim() async throws {
      // The journals stay referenced: a deallocated journal releases its claims.
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
      // The session that the server may still have is a separate entry.
      #expect(sums.map(\.destination) == [.tus, .tus, .put])
      #expect(sums.map(\.state) == [.failed, .refused, .intent])
      #expect(sums.map(\.bytes) == [0, 7, 7])
      #expect(sums.map(\.acknowledged) == [0, 3, 0])
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

    @Test func aNewerJournalIsRefusedAndLeftAsItIs() async throws {
      await (try await folder.open()).close()
      try Database(folder.path).execute("PRAGMA user_version=1000; PRAGMA wal_checkpoint(TRUNCATE)")
      let before = content(folder.path)
      let error = await #expect(throws: JournalError.self) { try await Journal.opened(at: folder.path) }
      #expect(error?.message.contains("use a newer program") == true)
      #expect(content(folder.path) == before)
    }

    @Test func aDamagedJournalIsReportedAndSetAside() async throws {
      let first = try await folder.open()
      let id = try await first.destinationID(.tus)
      _ = try await first.claim((0..<1000).map { intent("\($0)") }, destination: id)
      await first.close()
      let database = try Database(folder.path)
      try database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
      // The schema is on pages before the root of the last table, or just after it.
      let root = try database.statement("SELECT max(rootpage) FROM sqlite_schema").first { $0.int(0) }
      scribble(folder.path, from: (Int(try #require(root)) + 2) * 4096)
      let damaged = content(folder.path)

      // The first pages are intact: the journal opens, and fails during use.
      let (second, none) = try await Journal.opened(at: folder.path)
      #expect(none == nil)
      let error = await #expect(throws: JournalError.self) { try await second.unfinished() }
      #expect(error?.isDamaged == true)
      let kept = try #require(await second.keptAside())
      #expect(content(kept) == damaged)
      #expect(await second.keptAside() == nil)
      let (third, nothing) = try await Journal.opened(at: folder.path)
      #expect(nothing == nil)
      #expect(try await third.unfinished().isEmpty)
      await third.close()
    }

    @Test func oneOfTwoProcessesSetsADamagedJournalAside() async throws {
      let descriptor = folder.path.withCString { creat($0, 0o600) }
      let text = Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0x5A, count: 10_000)
      #expect(write(descriptor, text, text.count) == text.count)
      close(descriptor)
      let path = folder.path
      let opened = try await withThrowingTaskGroup(of: (Journal, BytePath?).self) { group in
        for _ in 0..<8 { group.addTask { try await Journal.opened(at: path) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(opened.filter { $0.1 != nil }.count == 1)
      #expect(try await opened[0].0.claim().name == "fresh")
      #expect(try await opened[7].0.claim(intent("b")).name == "fresh")
      #expect(try await opened[3].0.unfinished().count == 2)
      for (journal, _) in opened { await journal.close() }
    }
  }
}

private func content(_ path: BytePath) -> [UInt8] {
  guard let file = path.withCString({ fopen($0, "r") }) else { return [] }
  defer { fclose(file) }
  var bytes = [UInt8](repeating: 0, count: 4 << 20)
  return Array(bytes.prefix(fread(&bytes, 1, bytes.count, file)))
}

/// Overwrites the rest of a file with invalid data.
private func scribble(_ path: BytePath, from offset: Int) {
  let count = content(path).count - offset
  precondition(count > 0)
  let descriptor = path.withCString { open($0, O_WRONLY) }
  defer { close(descriptor) }
  precondition(pwrite(descriptor, [UInt8](repeating: 0x5A, count: count), count, off_t(offset)) == count)
}
