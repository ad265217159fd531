import BlobUpload
import Blobs
import Testing

// What a claim replaces, and for which recipient.
extension JournalTests.Claims {
  /// The server had the same bytes, or the file was only listed and not sent: no file was replaced.
  @Test func aFileFoundAtTheServerDoesNotReplaceAnEntryOfItsName() async throws {
    let (mine, other) = (intent("a.jpg"), intent("a.jpg", from: "/other/a.jpg"))
    let journal = try await folder.open()
    journal.done(try #require(try await journal.claim(mine).id), UploadResult())
    let refused = try await journal.claim(
      [other], destination: try await journal.destinationID(.put), sends: false)
    journal.refused(try #require(refused[0].id), "another file has that name")
    #expect(try await journal.claim(mine).name == "done")
    journal.done(try #require(try await journal.claim(other).id), UploadResult(), replaces: false)
    for intent in [mine, other] { #expect(try await journal.claim(intent).name == "done") }
    await journal.close()
  }

  /// Everything that decides where a file arrives, besides its URL, is part of the entry's key.
  @Test func anotherRecipientIsAnotherEntry() async throws {
    var (one, other) = (intent(), intent())
    (one.recipient, other.recipient) = ("one", "other")
    let journal = try await folder.open()
    for intent in [intent(), one, other] {
      let claim = try await journal.claim(intent)
      #expect(claim.name == "fresh")
      #expect(try await journal.only().intent == intent)
      journal.done(try #require(claim.id), UploadResult(location: intent.target))
    }
    for intent in [intent(), one, other] {
      let entry = try #require(try await journal.claim(intent).entry)
      #expect(entry.intent == intent && entry.location == intent.target)
      #expect(try await journal.sources(at: intent) == [intent.source])
    }
    await journal.close()
  }
}
