import BlobUpload
import Blobs

/// Entries of a journal that are to be sent, page by page.
protocol EntryPages: Sendable {
  var journal: Journal { get }
  /// The next page; empty: there are no more. `last`: the last entry of the page before; nil: this is the first page.
  func next(after last: JournalEntry?) async throws(JournalError) -> [JournalEntry]
  /// Whether a file that was found at the path of an entry may be its source.
  func mayBe(_ stamp: FileStamp, of entry: JournalEntry) -> Bool
  /// Called for an entry whose source cannot be sent from here. Returns whether another machine may do so; otherwise it has
  /// failed.
  func giveBack(_ entry: JournalEntry, _ message: String) async throws(JournalError) -> Bool
}

extension JournalPages: EntryPages {
  func mayBe(_ stamp: FileStamp, of entry: JournalEntry) -> Bool { true }
  func giveBack(_ entry: JournalEntry, _ message: String) async throws(JournalError) -> Bool { false }
}
