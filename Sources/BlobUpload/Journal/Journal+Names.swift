import BlobCrypto
import BlobSQLite
import Blobs

/// A file whose name is sealed, for the journal.
package struct SealedNameFacts: Sendable, Hashable {
  /// In nanoseconds since 1970; nil: unknown.
  var modified: Int64?
}

// The keys of sealed names. Each is in a file of its own beside the journal, and stays.
extension Journal {
  /// The key for the names at a place, `JournalDestination.place`; nil: there is none.
  package func names(at place: String) throws(JournalError) -> SealedNames? {
    let file = namesFile(of: place)
    if !file.exists { return nil }
    if let names = file.read().flatMap({ SealedNames(key: $0) }) { return names }
    throw JournalError(
      "\(file.path), the key of the sealed names at \(place), cannot be used: wanted are 32 bytes that only you can read, as "
        + "'chmod 600' makes it. Without it all files would be sent again under other names")
  }

  /// Keeps a key, or a new one, unless there is one. Returns the one that is kept.
  package func keepNames(_ names: SealedNames?, at place: String) throws(JournalError) -> SealedNames {
    // In a transaction of the journal, so that two processes do not make two keys.
    let result: Result<SealedNames, JournalError> = try write { [self] _, _ throws(SQLiteError) in
      Result { () throws(JournalError) in
        if let known = try self.names(at: place) { return known }
        let key = names?.key ?? FileSeal.newBoxKey()
        try namesFile(of: place).make(key)
        guard let made = SealedNames(key: key) else { throw JournalError("\(place): its key has another length") }
        return made
      }
    }
    return try result.get()
  }

  private nonisolated func namesFile(of place: String) -> SealKeyFile {
    let digest = Digest.hex(of: Array(place.utf8), .sha256).prefix(16)
    return SealKeyFile(at: BytePath(path.bytes + Array("-names-\(digest)".utf8)))
  }
}

// Files that are in no index of sealed names.
extension Journal {
  func unindexed(at destination: Int64, limit: Int) throws(JournalError) -> [UnindexedFile] {
    try read { store throws(SQLiteError) in
      try store.uploads.unindexed.files(
        at: try store.uploads.destinations.sharingNames(with: destination), limit: limit)
    }
  }

  /// As `UnindexedTable.named`.
  func named(
    at destination: Int64, after last: Int64, limit: Int
  ) throws(JournalError) -> (paths: [BytePath], last: Int64) {
    try read { store throws(SQLiteError) in
      try store.uploads.unindexed.named(
        at: try store.uploads.destinations.sharingNames(with: destination), after: last, limit: limit)
    }
  }

  /// A file was found at the destination under its opaque name.
  func foundTaken(_ file: UnindexedFile, at destination: Int64) throws(JournalError) {
    try read { store throws(SQLiteError) in try store.uploads.unindexed.keepTaken(file, at: destination) }
  }

  /// An index at the destination has these files.
  func indexed(_ ids: [Int64], in index: SentIndex, at destination: Int64) throws(JournalError) {
    try read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in
        try store.uploads.unindexed.note(ids, in: index, at: destination)
      }
    }
  }

  /// The indexes that were sent to a destination, or to another one with the same place and recipients. `areLost`: those that
  /// are to be replaced instead.
  func sentIndexes(at destination: Int64, areLost: Bool = false) throws(JournalError) -> [SentIndex] {
    try read { store throws(SQLiteError) in
      try store.uploads.unindexed.sent(
        at: try store.uploads.destinations.sharingNames(with: destination), areLost: areLost)
    }
  }

  /// An index is not at the destination any more, or has other bytes.
  func lost(_ index: SentIndex) throws(JournalError) {
    try read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in try store.uploads.unindexed.lose(index) }
    }
  }

  /// A lost index cannot be replaced.
  func forget(_ index: SentIndex) throws(JournalError) {
    try read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in try store.uploads.unindexed.forget(index) }
    }
  }

  /// The destinations that have such files, by their ids.
  package func unindexedDestinations() throws(JournalError) -> [Int64: JournalDestination] {
    try read { store throws(SQLiteError) in
      var found: [Int64: JournalDestination] = [:]
      for id in try store.uploads.unindexed.destinations() {
        found[id] = try store.uploads.destinations.destination(id)
      }
      return found
    }
  }
}

extension DestinationTable {
  /// The destinations of pushes to the same place as `destination`, for the same recipients and the same user.
  fileprivate func sharingNames(with destination: Int64) throws(SQLiteError) -> [Int64] {
    let own = try self.destination(destination)
    var found: [Int64] = []
    for id in try ids(at: own.place) {
      let other = try self.destination(id)
      if other.seal == own.seal, other.recipient == own.recipient, other.account == own.account { found.append(id) }
    }
    return found
  }
}

// Files that were deleted here.
extension Journal {
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
}
