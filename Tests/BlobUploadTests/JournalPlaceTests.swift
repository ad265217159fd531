import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// Several sources are sent to one name: only the one whose bytes are there counts as done before.
  @Suite struct Places {
    let folder = JournalFolder()

    private static let form = JournalDestination(endpoint: "https://host.example/files/", protocolName: "form")

    private func intent(_ source: BytePath, _ recipient: String? = nil, version: String = "1") -> JournalIntent {
      var intent = BlobUploadTests.intent(version: version, from: source)
      intent.recipient = recipient
      return intent
    }

    /// The first process may overwrite files, so from its claim on it could do so at any time.
    @Test(arguments: [nil, "query"], [JournalDestination.tus, .put])
    func oneProcessAtATimeSendsToAPlace(_ recipient: String?, _ destination: JournalDestination) async throws {
      let process = IdleProcess()
      let theirs = try await folder.open(as: process.mark)
      let mine = try await folder.open()
      let id = try #require(try await theirs.claim(intent("/y/a.jpg", recipient), at: destination).id)
      #expect(try await mine.claim(intent("/x/a.jpg"), at: destination).owner == process.mark)
      #expect(try await mine.unfinished().count == 1)
      theirs.done(id, UploadResult())
      try await theirs.flush()
      let claim = try await mine.claim(intent("/x/a.jpg"), at: destination)
      #expect(claim.name == "fresh")
      mine.done(try #require(claim.id), UploadResult())
      try await mine.flush()
      #expect(try await theirs.claim(intent("/y/a.jpg", recipient), at: destination).name == "fresh")
      await theirs.close()
      await mine.close()
    }

    /// The journal asks for other uploads to a place only where there may be some. An upload that is done once more always may
    /// have replaced one.
    @Test(arguments: [true, false])
    func anUploadThatIsSentAgainTakesItsPlaceBack(_ opens: Bool) async throws {
      let journal = try await folder.open()
      func send(_ id: Int64) async throws {
        if opens {
          journal.opened(id, session)
          try await journal.flush()
        }
        journal.done(id, UploadResult(location: "https://host.example/uploads/\(id)"))
        try await journal.flush()
      }
      let (one, other) = (intent("/x/a.jpg"), intent("/y/a.jpg"))
      try await send(try #require(try await journal.claim(one).id))
      try await send(try #require(try await journal.claim(other).id))
      #expect(try await journal.claim(other).entry?.isSuperseded == false)
      let before = try #require(try await journal.claim(one).entry)
      #expect(before.isSuperseded)
      journal.restarted(before.id)
      try await send(before.id)
      #expect(try await journal.claim(one).entry?.isSuperseded == false)
      #expect(try await journal.claim(other).entry?.isSuperseded == true)
      await journal.close()
    }

    @Test func othersOfABatchAreClaimedInOrder() async throws {
      let process = IdleProcess()
      let theirs = try await folder.open(as: process.mark)
      let mine = try await folder.open()
      let id = try await mine.destinationID(.tus)
      let names = (0..<40).map { "\($0)" }
      for name in ["3", "20", "39"] { _ = try await theirs.claim(BlobUploadTests.intent(name)) }
      let intents = names.map { BlobUploadTests.intent($0, from: BytePath("/x/" + $0)) }
      let claims = try await mine.claim(intents, destination: id)
      #expect(claims.map(\.name) == names.map { ["3", "20", "39"].contains($0) ? "busy" : "fresh" })
      #expect(
        try await mine.unfinished().filter { $0.owner == .current }.map(\.intent)
          == intents.filter { !["3", "20", "39"].contains($0.path.description) })
      process.end()
      #expect(try await mine.claim([intents[3]], destination: id).map(\.name) == ["fresh"])
      await theirs.close()
      await mine.close()
    }

    /// An entry that is only to be deleted is never sent.
    @Test func aLeftoverOfAnotherProcessKeepsNobodyWaiting() async throws {
      let process = IdleProcess()
      let theirs = try await folder.open(as: process.mark)
      let id = try #require(try await theirs.claim(intent("/y/a.jpg")).id)
      theirs.opened(id, session)
      theirs.abandoned(id)
      theirs.failed(id, "no")
      try await theirs.flush()
      let left = try #require(try await theirs.unfinished().first { $0.isLeftover })
      #expect(try await theirs.claim(entries: [left.id]).map(\.name) == ["resume"])
      let mine = try await folder.open()
      #expect(try await mine.claim(intent("/x/a.jpg")).name == "fresh")
      await theirs.close()
      await mine.close()
    }

    /// A query identifies the user or the kind of request: the file is the same.
    @Test(arguments: [(nil, "a"), ("a", nil), ("a", "b")] as [(String?, String?)])
    func bytesThatWereReplacedUnderAnotherQueryAreSentAgain(_ before: String?, _ after: String?) async throws {
      for isNew in [true, false] {
        let journal = try await folder.open()
        let first = intent("/x/a.jpg", before, version: "\(isNew)")
        let second = intent("/y/a.jpg", after, version: "\(isNew)")
        journal.done(try #require(try await journal.claim(first).id), UploadResult(location: first.target))
        journal.done(try #require(try await journal.claim(second).id), UploadResult(location: second.target))
        #expect(try await journal.claim(second).name == "done")
        #expect(try await journal.claim(first).name == "fresh")
        await journal.close()
      }
    }

    @Test func theSameVersionUnderTwoQueriesIsDoneUnderBoth() async throws {
      let journal = try await folder.open()
      for recipient in [nil, "a", "b"] {
        journal.done(try #require(try await journal.claim(intent("/x/a.jpg", recipient)).id), UploadResult())
      }
      for recipient in [nil, "a", "b"] {
        #expect(try await journal.claim(intent("/x/a.jpg", recipient)).name == "done")
      }
      await journal.close()
    }

    /// The first twin is done when the others are claimed, which may replace it at any time from then on.
    @Test func twinsStayDoneUntilOneOfThemHasOtherBytes() async throws {
      let journal = try await folder.open()
      func send(_ source: BytePath, twin: BytePath? = nil, version: String = "1") async throws {
        var intent = intent(source, version: version)
        intent.relatives.twin = twin
        let id = try #require(try await journal.claim(intent, at: .put).id)
        journal.done(id, UploadResult(location: intent.target))
      }
      func isDone(_ source: BytePath, version: String = "1") async throws -> Bool {
        let id = try await journal.destinationID(.put)
        let claims = try await journal.claim([intent(source, version: version)], destination: id, sends: false)
        return claims[0].name == "done"
      }
      try await send("/a")
      try await send("/b", twin: "/a")
      try await send("/c", twin: "/b")
      for source in ["/a", "/b", "/c"] as [BytePath] { #expect(try await isDone(source), "\(source)") }
      // The same source with other bytes is no twin any more, also of those that come later.
      try await send("/a", version: "2")
      try await send("/d", twin: "/a")
      #expect(try await isDone("/a", version: "2"))
      for (source, isStillDone) in [("/d", true), ("/b", false), ("/c", false)] as [(BytePath, Bool)] {
        #expect(try await isDone(source) == isStillDone, "\(source)")
      }
      await journal.close()
    }

    /// A form's fields and query decide where the file goes, and its URL does not.
    @Test func otherFormsAreOtherPlaces() async throws {
      let journal = try await folder.open()
      for recipient in ["a", "b"] {
        let id = try await journal.claim(intent(BytePath("/\(recipient)"), recipient), at: Self.form).id
        journal.done(try #require(id), UploadResult())
      }
      #expect(try await journal.claim(intent("/a", "a"), at: Self.form).name == "done")
      let other = try await folder.open(as: IdleProcess().mark)
      _ = try await other.claim(intent("/c", "c"), at: Self.form)
      #expect(try await journal.claim(intent("/d", "d"), at: Self.form).name == "fresh")
      await other.close()
      await journal.close()
    }

    /// A watch replaces its own upload of a file that has grown since. It may be killed at any time after its claim.
    @Test func aGrownSourceThatMayReplaceAFileForgetsTheOthersWhenItIsClaimed() async throws {
      let journal = try await folder.open()
      let id = try await journal.destinationID(.tus)
      func claim(_ source: BytePath, _ length: Int64, replacesGrown: Bool = false) async throws -> JournalClaim {
        let intent = BlobUploadTests.intent(version: "\(length)", length: length, from: source)
        return try await journal.claim([intent], destination: id, replacesGrown: replacesGrown)[0]
      }
      for source in ["/x/a.jpg", "/z/a.jpg"] as [BytePath] {
        journal.done(try #require(try await claim(source, 100).id), UploadResult(), replaces: false)
      }
      for (length, replacesGrown) in [(200, false), (50, true), (100, true)] as [(Int64, Bool)] {
        let claimed = try await claim("/x/a.jpg", length, replacesGrown: replacesGrown)
        journal.released(try #require(claimed.id))
        #expect(try await claim("/z/a.jpg", 100).name == "done", "\(length) \(replacesGrown)")
      }
      let grown = try await claim("/x/a.jpg", 200, replacesGrown: true)
      journal.released(try #require(grown.id))
      #expect(try await claim("/z/a.jpg", 100).name == "fresh")
      await journal.close()
    }

    /// The receiver of a form may silently keep both files. A form that asks to overwrite implies that files have names
    /// there.
    @Test(arguments: [false, true]) func formsOfOneNameForgetEachOtherOnlyWhereTheyReplace(_ overwrite: Bool)
      async throws
    {
      let journal = try await folder.open()
      var form = Self.form
      form.overwrite = overwrite
      for source in ["/x/a.jpg", "/y/a.jpg"] as [BytePath] {
        journal.done(try #require(try await journal.claim(intent(source, "f"), at: form).id), UploadResult())
      }
      #expect(try await journal.claim(intent("/y/a.jpg", "f"), at: form).name == "done")
      #expect(try await journal.claim(intent("/x/a.jpg", "f"), at: form).name == (overwrite ? "fresh" : "done"))
      await journal.close()
    }

    /// Names that start with another name, followed by characters next to `#`.
    @Test func longerNamesAreOtherPlaces() async throws {
      let journal = try await folder.open()
      let names = ["a", "a!", "a$", "a%23", "a\"", "aa"]
      for name in names {
        let id = try await journal.claim(BlobUploadTests.intent(name)).id
        journal.done(try #require(id), UploadResult())
      }
      for name in names { #expect(try await journal.claim(BlobUploadTests.intent(name)).name == "done", "\(name)") }
      await journal.close()
    }

    /// The journal needs one index lookup per file, however long it is.
    @Test func placesAreFoundByTheIndex() async throws {
      let journal = try await folder.open()
      _ = try await journal.claim(intent("/x/a.jpg"))
      let database = try Database(folder.path)
      for sql in [ReplacedUploads.doneAtURLs, ReplacedUploads.claimedAtURL] {
        let explain = try database.prepare("EXPLAIN QUERY PLAN \(sql)")
        var steps: [String] = []
        while try explain.step() { steps.append(explain.text(3) ?? "") }
        #expect(steps.contains { $0.contains("USING INDEX sqlite_autoindex_upload_1 (target>? AND target<?)") })
        let lookups = steps.filter { !$0.contains("SCALAR SUBQUERY") }
        #expect(lookups.allSatisfy { $0.hasPrefix("SEARCH") && !$0.contains("AUTOMATIC") }, "\(steps)")
      }
      await journal.close()
    }
  }
}
