import Blobs

/// A push that has started. It stays in the journal until every file of the push has its own entry, because the
/// unfinished entries do not include files that were never read.
public struct JournalListing: Sendable, Hashable, Identifiable {
  public var id: Int64
  /// Where the push goes, as far as it is known before the server's first response: the URL, and for S3 the bucket.
  public var destination: JournalDestination
  /// The id of the destination in this journal.
  public var destinationID: Int64
  /// The sources as the user gave them, as absolute paths.
  public var sources: [BytePath]
  /// Seconds since 1970.
  public var created: Int64
  /// The process that reads the sources; nil if that process ended before the listing was complete.
  package var owner: ProcessIdentity?
}

extension JournalDestination {
  /// Whether both push to the same place for the same user, regardless of other options. Destinations of an earlier
  /// version do not contain the query or the user, and match any.
  package func isSamePlace(as other: JournalDestination) -> Bool {
    place == other.place && (recipient ?? other.recipient) == (other.recipient ?? recipient)
      && (queryDigest ?? other.queryDigest) == (other.queryDigest ?? queryDigest)
      && (account ?? other.account) == (other.account ?? account)
  }
}

extension JournalDestination {
  /// Whether a push to `other` replaces an earlier one to this destination, which was not finished: it goes to the same
  /// place for the same user, or the earlier one had no credentials and may have been refused for that reason.
  package func isFollowed(by other: JournalDestination) -> Bool {
    var earlier = self
    if account?.isEmpty == true { earlier.account = nil }
    return earlier.isSamePlace(as: other)
  }
}
