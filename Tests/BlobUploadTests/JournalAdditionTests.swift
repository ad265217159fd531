import BlobSQLite
import BlobUpload
import Blobs
import Testing

extension JournalTests {
  /// What uploads were added with, and by which background uploader.
  struct Additions {
    private let addition = JournalAddition(
      metadata: ["kind": "photo"], contentType: "image/heic", version: "1", uploader: "wifi")

    private func claim(_ names: [String], in journal: Journal) async throws -> [Int64] {
      let destination = try await journal.destinationID(
        JournalDestination(endpoint: "https://nas.example/", protocolName: "tus 1.0"))
      let claims = try await journal.claim(
        names.map { name in
          JournalIntent(
            source: BytePath(name), target: "https://nas.example/\(name)", path: BytePath(name), length: 7,
            validator: Validator(version: "1", instance: ""), contentType: "image/png")
        }, destination: destination)
      return claims.compactMap { if case .fresh(let id) = $0 { id } else { nil } }
    }

    @Test func anUploadIsAssignedByItsPresentUploaderOnly() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let ids = try await claim(["a", "b", "c"], in: journal)
      try await journal.additions.keep(addition, of: ids[0])
      #expect(try await journal.additions.assign(ids, from: nil, to: "mobile") == [ids[1], ids[2]])
      #expect(try await journal.additions.assign(ids, from: nil, to: "wifi") == [])
      #expect(try await journal.additions.assign([ids[0], 1000], from: "wifi", to: "mobile") == [ids[0]])
      // The journal is not closed, as after a kill.
      let stored = try await folder.open().additions.all(of: ids + [1000])
      var expected = addition
      expected.uploader = "mobile"
      #expect(stored[ids[0]] == expected && stored.count == 3)
      #expect(
        stored[ids[1]] == JournalAddition(metadata: [:], contentType: "image/png", version: nil, uploader: "mobile"))
      // Of an upload that is done, nothing is kept, unless another version was added meanwhile.
      for id in ids { journal.done(id, UploadResult(length: 7)) }
      #expect(try await journal.additions.dropDone().isEmpty)
      #expect(try await journal.additions.all(of: ids).isEmpty)
    }

    /// Journals of earlier versions have no identifiers.
    @Test func anAdditionWithoutAnIdentifierIsThatOfNobody() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let id = try #require(try await claim(["a"], in: journal).first)
      try await journal.additions.keep(addition, of: id)
      await journal.close()
      let database = try Database(folder.path, withTables: ["metadata"])
      try database.execute(
        #"UPDATE metadata SET json = '{"contentType":"image/heic","metadata":{"kind":"photo"},"version":"1"}'"#)
      let next = try await folder.open()
      var expected = addition
      expected.uploader = nil
      #expect(try await next.additions.addition(of: id) == expected)
      #expect(try await next.additions.assign([id], from: nil, to: "wifi") == [id])
      #expect(try await next.additions.addition(of: id) == addition)
    }

    @Test func givingUpSkipsTheUploadsOfAnotherUploader() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let ids = try await claim(["a", "b"], in: journal)
      try await journal.additions.keep(addition, of: ids[0])
      for id in ids { journal.released(id) }
      let destination = try #require(try await journal.unfinished().first?.destinationID)
      let givenUp = try await journal.giveUp(at: destination) { $1?.uploader == nil }
      #expect(givenUp.map(\.id) == [ids[1]])
      #expect(try await journal.unfinished().map(\.id) == [ids[0]])
    }

    /// The server gives uploads no URLs of their own, so the first entry would be removed once another source has its place.
    @Test(arguments: [true, false]) func anUploadThatWasAddedAgainOutlivesAnotherAtItsPlace(isAgain: Bool) async throws
    {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let first = try #require(try await claim(["a"], in: journal).first)
      journal.done(first, UploadResult(length: 7))
      let entry = try #require(try await journal.finished().first)
      var again = addition
      (again.isAgain, again.number) = (isAgain, 2)
      try await journal.additions.keep(again, of: first)
      var other = entry.intent
      other.source = "b"
      for case .fresh(let id) in try await journal.claim([other], destination: entry.destinationID) {
        journal.done(id, UploadResult(length: 7))
      }
      try await journal.flush()
      #expect(try await journal.finished().map(\.intent.source) == ["b"])
      #expect(try await journal.unfinished().map(\.id) == (isAgain ? [first] : []))
      #expect(try await journal.additions.addition(of: first) == (isAgain ? again : nil))
    }

    @Test func finishedUploadsAreFoundByTheirTime() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let ids = try await claim(["a", "b"], in: journal)
      let start = currentSeconds()
      journal.done(ids[0], UploadResult(length: 7))
      #expect(try await journal.finished(since: start).map(\.id) == [ids[0]])
      #expect(try await journal.finished(since: currentSeconds() + 1).isEmpty)
      #expect(try await journal.finished(at: [1000], since: start).isEmpty)
    }

    @Test func theJobsOfAURLAreFoundForAllAccounts() async throws {
      let folder = JournalFolder()
      let journal = try await folder.open()
      let url = "https://nas.example/a"
      for (other, account) in [(url, nil), (url, "1"), (url, "2"), ("\(url)b", nil), ("\(url)/", "1")]
        as [(String, String?)]
      {
        try await journal.jobs.keep(JournalJob(other, account: account, source: "photo"))
      }
      #expect(try await journal.jobs.jobs(at: url).map(\.account) == [nil, "1", "2"])
      #expect(try await journal.jobs.jobs(at: "https://nas.example/").isEmpty)
    }
  }
}
