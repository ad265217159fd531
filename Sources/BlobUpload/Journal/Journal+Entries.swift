import BlobSQLite
import Blobs

// Destinations and their entries.
extension Journal {
  /// The id of a destination. Equal destinations have the same id in every run.
  public func destinationID(_ destination: JournalDestination) throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.uploads.destinations.id(of: destination) }
  }

  /// The id under which `Uploader` and `BackgroundUploader` keep their uploads to this destination, with its account. `overwrite`: as
  /// given to them.
  public func destinationID(of destination: UploadDestination, overwrite: Bool = false) throws(JournalError) -> Int64 {
    try destinationID(destination.journaled(overwrite: overwrite))
  }

  /// Every destination for which a push was started, in no particular order.
  public func destinations() throws(JournalError) -> [JournalDestination] {
    try read { store throws(SQLiteError) in try store.uploads.destinations.all() }
  }

  /// The entries that are not done, the oldest first.
  ///
  /// - `id`, `limit`: at most this many of those with higher ids, so that a caller can read page by page. An entry that
  ///   is written meanwhile has a higher id than all others.
  /// - `destinations`: only entries with one of these destination ids; nil: all.
  public func unfinished(
    after id: Int64 = 0, limit: Int = .max, at destinations: Set<Int64>? = nil
  ) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in
      try store.releaseDeadOwners()
      return try store.uploads.unfinished(after: id, limit, destinations)
    }
  }

  /// Adds uploads that another journal has begun, to destinations of this one. Entries of the same sources and places are
  /// replaced. Returns the new entries, which nobody has claimed.
  package func adopt(
    _ uploads: [(upload: ResumableUpload, parts: [PartReceipt], destination: Int64)]
  ) throws(JournalError) -> [JournalEntry] {
    try write { store, _ throws(SQLiteError) in
      var entries: [JournalEntry] = []
      for (upload, parts, destination) in uploads {
        guard let intent = upload.intent else { continue }
        let id = try store.uploads.adopt(upload, intent, parts, destination)
        if let entry = try store.uploads.entry(id: id) { entries.append(entry) }
      }
      return entries
    }
  }

  /// The highest id of an entry; 0: there are none.
  package func lastID() throws(JournalError) -> Int64 {
    try read { store throws(SQLiteError) in try store.uploads.lastID() }
  }

  /// The entries that are done, in the same way. `since`: only those that were last changed then or later, in seconds since
  /// 1970.
  public func finished(
    after id: Int64 = 0, limit: Int = .max, at destinations: Set<Int64>? = nil, since time: Int64 = 0
  ) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.uploads.finished(after: id, limit, destinations, since: time) }
  }

  /// Unclaimed entries of this destination that exist only to be deleted at the server.
  func leftovers(at destination: Int64) throws(JournalError) -> [Int64] {
    try read { store throws(SQLiteError) in try store.uploads.leftovers(at: destination) }
  }

  /// Counts and bytes by destination and state. Fast even for a large journal.
  public func summary() throws(JournalError) -> [JournalSummary] {
    try read { store throws(SQLiteError) in try store.uploads.summary() }
  }

  /// The latest `limit` entries in a state, the oldest of them first; all of them if `limit` is negative.
  public func entries(_ state: JournalEntry.State, limit: Int) throws(JournalError) -> [JournalEntry] {
    try read { store throws(SQLiteError) in try store.uploads.entries(state, limit: limit) }
  }

  /// The checksums of an upload's content, stored when it was done: ranges, or parts with their digests. Empty if none
  /// were stored.
  func checksums(of id: Int64) throws(JournalError) -> (sent: [SentRange], parts: [PartReceipt]) {
    try read { store throws(SQLiteError) in
      (try store.uploads.sent.ranges(id, underWayBy: nil), try store.uploads.receipts(id))
    }
  }

  /// The sources that were or are to be sent to the place of `intent`, under the same name.
  package func sources(at intent: JournalIntent) throws(JournalError) -> [BytePath] {
    try read { store throws(SQLiteError) in try store.uploads.sources(of: intent.key) }
  }

  /// Whether the destination of an entry has an entry of another source for this place, whatever its state is.
  func hasOther(than entry: Int64, at target: String) throws(JournalError) -> Bool {
    try read { store throws(SQLiteError) in try store.uploads.hasOther(than: entry, at: target) }
  }

  /// The sessions of all other entries for a place, of any source and destination.
  func sessions(at target: String, except entry: Int64) throws(JournalError) -> [UploadSession] {
    try read { store throws(SQLiteError) in try store.uploads.sessions(at: target, except: entry) }
  }

  /// The uploads to a destination, in any state, for which `isMeant` returns true. Reads every entry of the destination.
  package func uploads(
    to destination: Int64, where isMeant: @Sendable (JournalUpload) -> Bool
  ) throws(JournalError) -> [JournalUpload] {
    try read { store throws(SQLiteError) in try store.uploads.uploads(to: destination, where: isMeant) }
  }

  /// The history of the files in and below `folder`, an absolute path. `destination` is the journal's id of a
  /// destination; pushes to the same URL with other options count too.
  public func history(of folder: BytePath, destination: Int64) throws(JournalError) -> SourceHistory {
    var name = folder.bytes
    while name.last == UInt8(ascii: "/") { name.removeLast() }
    return try history(ofNamesBeginning: name + [UInt8(ascii: "/")], destination: destination)
  }

  /// The history of all sources whose names begin with `prefix`, which must end in an ASCII character.
  package func history(
    ofNamesBeginning prefix: [UInt8], destination: Int64
  ) throws(JournalError) -> SourceHistory {
    try read { store throws(SQLiteError) in try store.uploads.history(ofNamesBeginning: prefix, destination) }
  }

  /// Notes sources that are proved at the destination and may be deleted here now.
  package func noteDeletions(_ intents: [JournalIntent]) throws(JournalError) {
    try write { store, _ throws(SQLiteError) in
      for intent in intents { try store.uploads.deleted.keep(intent) }
    }
  }

  /// Sources that were noted so and were not deleted.
  package func forgetDeletions(of sources: [BytePath]) throws(JournalError) {
    if sources.isEmpty { return }
    try write { store, _ throws(SQLiteError) in
      for source in sources { try store.uploads.deleted.forget(source) }
    }
  }

  /// For each intent, the sources of which its place may have the only copy, because they were deleted here. Its own source is
  /// one of them if another version of it was. Some of the others may still be there.
  package func deletedSources(at intents: [JournalIntent]) throws(JournalError) -> [[BytePath]] {
    try read { store throws(SQLiteError) in
      if try store.uploads.deleted.isEmpty { return intents.map { _ in [] } }
      var sources: [[BytePath]] = []
      for intent in intents { sources.append(try store.uploads.deleted.versions(at: intent)) }
      return sources
    }
  }

  /// Records that a push of `sources` starts, before a source is read or a request is sent. Replaces listings that
  /// earlier pushes of the same sources to the same URL have left, whatever their options were.
  package func beginListing(_ sources: [BytePath], destination: Int64) throws(JournalError) -> Int64 {
    try write { store, me throws(SQLiteError) in try store.listings.begin(sources, destination, me) }
  }

  /// Removes listings, because every file has an entry or the user gives them up. A listing that another process has
  /// taken over meanwhile stays.
  package func endListings(_ ids: [Int64]) throws(JournalError) {
    try write { store, me throws(SQLiteError) in try store.listings.end(ids, me) }
  }

  /// The listings that have not ended, the oldest first.
  public func listings() throws(JournalError) -> [JournalListing] {
    try read { store throws(SQLiteError) in
      try store.releaseDeadOwners()
      return try store.listings.all()
    }
  }
}
