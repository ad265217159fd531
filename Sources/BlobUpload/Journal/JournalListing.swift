import BlobSQLite
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
  public var owner: ProcessIdentity?
}

extension Journal {
  /// Records that a push of `sources` starts, before a source is read or a request is sent. Replaces listings that
  /// earlier pushes of the same sources to the same URL have left, whatever their options were.
  public func beginListing(_ sources: [BytePath], destination: Int64) throws(JournalError) -> Int64 {
    try write { store, me throws(SQLiteError) in try store.beginListing(sources, destination, me) }
  }

  /// Removes listings, because every file has an entry or the user gives them up. A listing that another process has
  /// taken over meanwhile stays.
  public func endListings(_ ids: [Int64]) throws(JournalError) {
    try write { store, me throws(SQLiteError) in
      let delete = try store.database.statement(
        "DELETE FROM listing WHERE id = ?1 AND (owner IS NULL OR owner = ?2)")
      for id in ids {
        try delete.bind(1, id)
        try delete.bind(2, me)
        try delete.run()
      }
    }
  }

  /// The listings that have not ended, the oldest first.
  public func listings() throws(JournalError) -> [JournalListing] {
    try read { store throws(SQLiteError) in
      try store.buryDead()
      return try store.listings()
    }
  }
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

extension JournalStore {
  /// Must be called inside a transaction.
  fileprivate func beginListing(
    _ sources: [BytePath], _ destination: Int64, _ me: Int64
  ) throws(SQLiteError) -> Int64 {
    // Paths contain no NUL.
    let joined = Array(sources.map(\.bytes).joined(separator: [0]))
    let place = try self.destination(destination)
    for old in try listings()
    where old.sources == sources && old.destination.isFollowed(by: place) && old.destinationID != destination
      && old.owner == nil
    {
      try run("DELETE FROM listing WHERE id = ?1", with: old.id)
    }
    let upsert = try database.statement(
      """
      INSERT INTO listing(destination, owner, created, sources) VALUES(?1, ?2, ?3, ?4)
      ON CONFLICT(destination, sources) DO UPDATE SET owner = ?2, created = ?3
      """)
    try upsert.bind(1, destination)
    try upsert.bind(2, me)
    try upsert.bind(3, currentSeconds())
    try upsert.bind(4, joined)
    try upsert.run()
    let select = try database.statement("SELECT id FROM listing WHERE destination = ?1 AND sources = ?2")
    try select.bind(1, destination)
    try select.bind(2, joined)
    return try select.first { $0.int(0) } ?? 0
  }

  fileprivate func listings() throws(SQLiteError) -> [JournalListing] {
    forgetLookups()
    let select = try database.statement("SELECT id, destination, sources, created, owner FROM listing ORDER BY id")
    defer { select.reset() }
    var listings: [JournalListing] = []
    while try select.step() {
      let sources = (select.blob(2) ?? []).split(separator: 0).map { BytePath($0) }
      listings.append(
        JournalListing(
          id: select.int(0), destination: try destination(select.int(1)), destinationID: select.int(1),
          sources: sources, created: select.int(3),
          owner: select.isNull(4) ? nil : try liveOwner(select.int(4))))
    }
    return listings
  }
}
