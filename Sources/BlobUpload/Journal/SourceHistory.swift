import Blobs

/// A summary of a journal's entries for the files of one folder, or the rows of one table, at one destination.
public struct SourceHistory: Sendable, Hashable {
  /// At least one of them was sent, in the version that was seen last.
  public var hasSent: Bool
  /// The number of uploads that are not done.
  public var unfinished: Int

  /// Creates a history of given facts.
  public init(hasSent: Bool, unfinished: Int) {
    (self.hasSent, self.unfinished) = (hasSent, unfinished)
  }
}

/// An upload in the journal, without its session.
package struct JournalUpload: Sendable {
  /// The URL of the file at the server.
  package var target: String
  package var source: BytePath
  /// The path below the destination.
  package var path: BytePath
}
