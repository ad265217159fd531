import BlobHTTP
import BlobSQLite
import Blobs
import Testing

@testable import BlobUpload

extension JournalTests {
  /// A URL can be written in several ways: the place is the same.
  @Suite struct Spellings {
    let folder = JournalFolder()
    private static let pairs = [
      ("http://nas/a/", "HTTP://NAS:80/a/"), ("http://nas/~a/", "http://nas/%7Ea/"),
      ("http://nas/%C3%BC/", "http://nas/%c3%bc/"), ("http://nas/b/", "http://nas/%62/"),
    ]

    private func kept(_ url: String, _ destination: UploadDestination, overwrite: Bool = true) -> JournalDestination {
      JournalDestination(
        endpoint: url, protocolName: "tus", overwrite: overwrite, recipient: destination.journaledRecipient,
        account: destination.journaledAccount)
    }

    private func destination(_ url: String) -> UploadDestination {
      UploadDestination(endpoint: HTTPURL(url)!, uploadProtocol: Tus(), limits: PartLimits())
    }

    private func intent(_ source: BytePath, at destination: UploadDestination) -> JournalIntent {
      let info = BlobInfo(length: 100, validator: Validator(version: "1", instance: "i"))
      return UploadItem(
        source: DataSource([]), info: info, identity: source, target: destination.target("a.jpg", length: 100)
      ).intent()
    }

    private func claim(_ journal: Journal, _ source: BytePath, at url: String) async throws -> JournalClaim {
      let destination = destination(url)
      return try await journal.claim(intent(source, at: destination), at: kept(url, destination))
    }

    @Test(arguments: pairs) func onePlaceHasOneKey(_ one: String, _ other: String) async throws {
      let journal = try await folder.open()
      let id = try #require(try await claim(journal, "/x/a.jpg", at: one).id)
      journal.opened(id, session)
      journal.released(id)
      #expect(try await claim(journal, "/x/a.jpg", at: other).name == "resume")
      journal.done(id, UploadResult(location: "http://nas/x"))
      let second = try await claim(journal, "/y/a.jpg", at: other)
      journal.done(try #require(second.id), UploadResult())
      // The place has the other file's bytes.
      #expect(try await claim(journal, "/x/a.jpg", at: one).entry?.isSuperseded == true)
      #expect(try await claim(journal, "/y/a.jpg", at: one).name == "done")
      await journal.close()
    }

    @Test(arguments: pairs) func oneProcessAtATimeSendsToAPlace(_ one: String, _ other: String) async throws {
      let process = IdleProcess()
      let theirs = try await folder.open(as: process.mark)
      let mine = try await folder.open()
      _ = try await claim(theirs, "/y/a.jpg", at: one)
      #expect(try await claim(mine, "/x/a.jpg", at: other).owner == process.mark)
      await theirs.close()
      await mine.close()
    }

    /// The uploads' URL, which has no slash at its end, is part of the recipient.
    @Test func aPathWithoutASlashIsOneRecipient() {
      let intents = ["http://nas/%7Ea", "http://nas/~a"].map { intent("/x/a.jpg", at: destination($0)) }
      #expect(intents[0].key == intents[1].key && intents[0].recipient != nil)
    }

    /// As an earlier version has left them, whose keys had URLs as they were written.
    private func writeInFormat8(_ rename: String) throws {
      try Database(folder.path).execute("\(rename); PRAGMA user_version=8")
    }

    @Test(arguments: ["http://nas/%7Ea/", "http://nas/%7Ea"])
    func anUploadBegunByAnEarlierVersionIsResumed(_ url: String) async throws {
      let first = try await folder.open()
      let id = try #require(try await claim(first, "/x/a.jpg", at: url).id)
      first.opened(id, session)
      await first.close()
      let typed = Recipient.digest(ofPath: "/%7Ea")!
      let normal = Recipient.digest(ofPath: "/~a")!
      try writeInFormat8(
        """
        UPDATE upload SET target = replace(replace(target, '~', '%7E'), '\(normal)', '\(typed)');
        UPDATE destination SET json = replace(json, '\(normal)', '\(typed)')
        """)
      let second = try await folder.open()
      let entry = try await second.only()
      try destination("http://nas/~a").with { try $0.goOn(with: entry.destination) }
      #expect(try await claim(second, "/x/a.jpg", at: url.replacing("%7E", with: "~")).entry?.id == id)
      #expect(try await second.unfinished().map(\.id) == [id])
      await second.close()
    }

    /// Both were done for that version, though the place has the bytes of one of them.
    @Test func theLastOfTwoFilesSentToOnePlaceByAnEarlierVersionIsDone() async throws {
      let first = try await folder.open()
      for (source, url) in [
        ("/x/a.jpg", "http://nas/a/"), ("/y/a.jpg", "http://nas/b/"), ("/z/a.jpg", "http://nas/c/"),
      ]
        as [(BytePath, String)]
      {
        first.done(try #require(try await claim(first, source, at: url).id), UploadResult())
      }
      await first.close()
      try writeInFormat8(
        """
        UPDATE upload SET target = replace(target, '/nas/b/', '/NAS/a/'), updated = updated + id;
        UPDATE destination SET json = replace(json, '/nas/b/', '/NAS/a/')
        """)
      let second = try await folder.open()
      #expect(try await second.entries(.done, limit: -1).map(\.intent.source) == ["/y/a.jpg", "/z/a.jpg"])
      #expect(try await second.summary().reduce(0) { $0 + $1.count } == 2)
      #expect(try await claim(second, "/y/a.jpg", at: "http://nas/a/").name == "done")
      #expect(try await claim(second, "/x/a.jpg", at: "http://nas/a/").name == "fresh")
      await second.close()
    }

    /// The journal counts whole seconds, so either may be the one whose bytes the place has.
    @Test func noneOfTwoFilesFinishedInTheSameSecondIsDone() async throws {
      let first = try await folder.open()
      for (source, url) in [("/x/a.jpg", "http://nas/a/"), ("/y/a.jpg", "http://nas/b/")] as [(BytePath, String)] {
        first.done(try #require(try await claim(first, source, at: url).id), UploadResult())
      }
      await first.close()
      try writeInFormat8(
        """
        UPDATE upload SET target = replace(target, '/nas/b/', '/NAS/a/'), updated = 1700000000;
        UPDATE destination SET json = replace(json, '/nas/b/', '/NAS/a/')
        """)
      let second = try await folder.open()
      #expect(try await second.entries(.done, limit: -1).isEmpty)
      #expect(try await claim(second, "/x/a.jpg", at: "http://nas/a/").name == "fresh")
      #expect(try await claim(second, "/y/a.jpg", at: "http://nas/a/").name == "fresh")
      await second.close()
    }

    /// The upload of the other source was killed: it may have replaced the file before the journal had it as done.
    @Test func aFileThatAnUnfinishedUploadMayHaveReplacedIsNotClaimedAsDone() async throws {
      let first = try await folder.open()
      first.done(try #require(try await claim(first, "/x/a.jpg", at: "http://nas/a/").id), UploadResult())
      _ = try #require(try await claim(first, "/y/a.jpg", at: "http://nas/b/").id)
      await first.close()
      try writeInFormat8(
        """
        UPDATE upload SET target = replace(target, '/nas/b/', '/NAS/a/');
        UPDATE destination SET json = replace(json, '/nas/b/', '/NAS/a/')
        """)
      let second = try await folder.open()
      #expect(try await second.entries(.done, limit: -1).isEmpty)
      #expect(try await claim(second, "/x/a.jpg", at: "http://nas/a/").name == "fresh")
      await second.close()
    }

    /// One source under two keys, which become one: what the server may have of the older upload is to be deleted.
    @Test(arguments: [false, true]) func theNewerOfTwoEntriesThatBecomeOneStays(_ isNewer: Bool) async throws {
      let first = try await folder.open()
      var ids: [Int64] = []
      for url in ["http://nas/a/", "http://nas/b/"] {
        let id = try #require(try await claim(first, "/x/a.jpg", at: url).id)
        first.opened(id, session)
        ids.append(id)
      }
      await first.close()
      try writeInFormat8(
        """
        UPDATE upload SET target = replace(target, '/nas/b/', '/NAS/a/'), updated = updated + \(isNewer ? "" : "-")id;
        UPDATE destination SET json = replace(json, '/nas/b/', '/NAS/a/')
        """)
      let second = try await folder.open()
      if !isNewer { ids.reverse() }
      #expect(try await second.unfinished().filter(\.isLeftover).map(\.id) == [ids[0]])
      #expect(try await claim(second, "/x/a.jpg", at: "http://nas/a/").entry?.id == ids[1])
      await second.close()
    }
  }
}

extension UploadDestination {
  fileprivate func with(_ body: (inout UploadDestination) throws -> Void) rethrows {
    var copy = self
    try body(&copy)
  }
}
