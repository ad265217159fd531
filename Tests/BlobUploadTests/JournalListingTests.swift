import BlobSQLite
import BlobUpload
import Blobs
import Testing

extension JournalTests {
  /// Tests pushes that have not read all their sources, and the parts of a destination that are not stored.
  @Suite struct Listings {
    let folder = JournalFolder()

    @Test func aListingOutlivesItsProcessUntilItEnds() async throws {
      let process = IdleProcess()
      let first = try await folder.open(as: process.mark)
      let destination = try await first.destinationID(.tus)
      let sources: [BytePath] = ["/card/", BytePath([0x2F, 0xFF])]
      let id = try await first.beginListing(sources, destination: destination)
      let second = try await folder.open()
      #expect(try await second.listings().map(\.owner) == [process.mark])
      process.end()
      let left = try #require(try await second.listings().first)
      #expect(left.owner == nil && left.sources == sources && left.destination == .tus)
      // Running the same push again replaces its listing.
      #expect(try await second.beginListing(sources, destination: destination) == id)
      try await second.endListings([id])
      #expect(try await second.listings().isEmpty)
      await first.close()
      await second.close()
    }

    /// The options do not matter, because they do not show which files are missing.
    @Test func aListingIsReplacedByALaterPushOfTheSameSourcesToTheSameURL() async throws {
      let journal = try await folder.open()
      let first = try await folder.open()
      for (sources, destination) in [(["/card/"], JournalDestination.tus), (["/other/"], .tus)]
        as [([BytePath], JournalDestination)]
      {
        _ = try await first.beginListing(sources, destination: try await first.destinationID(destination))
      }
      await first.close()
      let put = try await journal.destinationID(.put)
      let id = try await journal.beginListing(["/card/"], destination: put)
      #expect(try await journal.listings().map(\.sources) == [["/other/"], ["/card/"]])
      try await journal.endListings([id])
      #expect(try await journal.listings().map(\.sources) == [["/other/"]])
      #expect(Set(try await journal.destinations()) == [.tus, .put])
      await journal.close()
    }

    /// The server refuses a push without credentials, which is run again with them.
    @Test(arguments: [("", "me", 1), ("me", "", 2), ("me", "you", 2), ("me", "me", 1)])
    func aListingWithoutCredentialsIsReplacedByOneWithThem(_ first: String, _ second: String, _ left: Int) async throws
    {
      let earlier = try await folder.open()
      let journal = try await folder.open()
      for (journal, account) in [(earlier, first), (journal, second)] {
        let destination = JournalDestination(
          endpoint: "https://host.example/", protocolName: "tus", account: account)
        _ = try await journal.beginListing(["/card/"], destination: try await journal.destinationID(destination))
        if account == first { await earlier.close() }
      }
      #expect(try await journal.listings().count == left)
      await journal.close()
    }

    /// A push that finds a folder empty looks up what happened to its files.
    @Test func theHistoryOfAFolderIsThatOfOneURL() async throws {
      let journal = try await folder.open()
      let (tus, put) = (try await journal.destinationID(.tus), try await journal.destinationID(.put))
      let other = try await journal.destinationID(
        JournalDestination(endpoint: "https://host.example/other/", protocolName: "tus"))
      func history(_ folder: BytePath, _ destination: Int64) async throws -> SourceHistory {
        try await journal.history(of: folder, destination: destination)
      }
      let names = ["a/1.jpg", "a/2.jpg", "ab.jpg", "b/1.jpg"]
      let claims = try await journal.claim(names.map { intent($0) }, destination: tus)
      #expect(try await history("/gallery/a/", tus) == SourceHistory(hasSent: false, unfinished: 2))
      journal.done(try #require(claims[0].id), UploadResult())
      journal.failed(try #require(claims[1].id), "no room")
      #expect(try await history("/gallery/a", tus) == SourceHistory(hasSent: true, unfinished: 1))
      #expect(try await history("/gallery/a", put) == SourceHistory(hasSent: true, unfinished: 1), "the same URL")
      #expect(try await history("/gallery/a", other) == SourceHistory(hasSent: false, unfinished: 0))
      #expect(try await history("/gallery", tus) == SourceHistory(hasSent: true, unfinished: 3))
      await journal.close()
    }

    /// Each user has a separate tree of files at that URL.
    @Test func aListingOfAnotherUserStays() async throws {
      let (first, journal) = (try await folder.open(), try await folder.open())
      func destination(_ account: String?) -> JournalDestination {
        JournalDestination(endpoint: "https://host.example/files/", protocolName: "put", account: account)
      }
      let anna = try await first.beginListing(
        ["/card/"], destination: try await first.destinationID(destination("anna")))
      await first.close()
      for account in ["bob", ""] {
        let id = try await journal.destinationID(destination(account))
        try await journal.endListings([try await journal.beginListing(["/card/"], destination: id)])
        #expect(try await journal.listings().map(\.id) == [anna], "'\(account)'")
      }
      var other = destination("anna")
      other.overwrite = true
      let id = try await journal.beginListing(["/card/"], destination: try await journal.destinationID(other))
      #expect(try await journal.listings().map(\.id) == [id])
      #expect(
        destination("anna").isSamePlace(as: destination(nil)) && destination(nil).isSamePlace(as: destination("")))
      await journal.close()
    }

    @Test func aListingThatAnotherProcessHasTakenOverStays() async throws {
      let (first, second) = (try await folder.open(), try await folder.open())
      let destination = try await first.destinationID(.tus)
      let id = try await first.beginListing(["/card/"], destination: destination)
      #expect(try await second.beginListing(["/card/"], destination: destination) == id)
      try await first.endListings([id])
      #expect(try await first.listings().map(\.id) == [id])
      try await second.endListings([id])
      #expect(try await first.listings().isEmpty)
      await first.close()
      await second.close()
    }

    @Test func theQueryOfADestinationIsNotKept() async throws {
      let given = JournalDestination(
        endpoint: "https://host.example/in/?sv=2024-11-04&sig=planted", protocolName: "tus")
      #expect(given.endpoint == "https://host.example/in/" && given.hidesQuery == true)
      let journal = try await folder.open()
      let other = JournalDestination(endpoint: "https://host.example/in/?sv=2024-11-04&sig=other", protocolName: "tus")
      #expect(try await journal.destinationID(given) == journal.destinationID(other))
      await journal.close()
    }

    @Test func queriesOfEarlierFormatsAreTakenOut() async throws {
      let first = try await folder.open()
      let id = try #require(try await first.claim().id)
      await first.close()
      let database = try Database(folder.path)
      try database.execute(
        """
        DROP TABLE listing;
        ALTER TABLE upload DROP COLUMN sent_length;
        UPDATE destination SET json = replace(json, 'example/files/', 'example/files/?sig=planted');
        INSERT INTO destination(json) SELECT replace(json, 'planted', 'other') FROM destination;
        INSERT INTO finished SELECT id, 2, 10 FROM destination;
        PRAGMA user_version=6;
        """)
      let second = try await folder.open()
      let only = try await second.only()
      #expect(only.id == id && only.destination.endpoint == "https://host.example/files/")
      #expect(only.destination.hidesQuery == true)
      #expect(try await second.summary().filter { $0.state == .done }.map(\.count) == [4])
      await second.close()
      _ = database
    }
  }
}
