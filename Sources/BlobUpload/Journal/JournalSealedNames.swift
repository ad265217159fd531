import BlobCrypto
import BlobSQLite
import Blobs

/// A file whose name is sealed, for the journal.
package struct SealedNameFacts: Sendable, Hashable {
  /// In nanoseconds since 1970; nil: unknown.
  var modified: Int64?
}

/// The sealed names of a journal's uploads: their keys, each of which is in a file of its own beside the journal and stays, and
/// the files that are in no index of sealed names.
package struct JournalSealedNames: Sendable {
  let journal: Journal

  /// The key for the names at a place, `JournalDestination.place`; nil: there is none.
  package func key(at place: String) async throws(JournalError) -> SealedNames? { try await known(at: place, journal) }

  /// The file is read on the journal's thread.
  private func known(at place: String, _: isolated Journal) throws(JournalError) -> SealedNames? {
    try known(at: place)
  }

  private func known(at place: String) throws(JournalError) -> SealedNames? {
    let file = namesFile(of: place)
    if !file.exists { return nil }
    if let names = file.read().flatMap({ SealedNames(key: $0) }) { return names }
    throw JournalError(
      "\(file.path), the key of the sealed names at \(place), cannot be used: wanted are 32 bytes that only you can read, as "
        + "'chmod 600' makes it. Without it all files would be sent again under other names")
  }

  /// Keeps a key, or a new one, unless there is one. Returns the one that is kept.
  package func keep(_ names: SealedNames?, at place: String) async throws(JournalError) -> SealedNames {
    // In a transaction of the journal, so that two processes do not make two keys.
    let result: Result<SealedNames, JournalError> = try await journal.write { _, _ throws(SQLiteError) in
      Result { () throws(JournalError) in
        if let known = try known(at: place) { return known }
        let key = names?.key ?? FileSeal.newBoxKey()
        try namesFile(of: place).make(key)
        guard let made = SealedNames(key: key) else { throw JournalError("\(place): its key has another length") }
        return made
      }
    }
    return try result.get()
  }

  private func namesFile(of place: String) -> SealKeyFile {
    let digest = Digest.hex(of: Array(place.utf8), .sha256).prefix(16)
    return SealKeyFile(at: BytePath(journal.path.bytes + Array("-names-\(digest)".utf8)))
  }

  func unindexed(at destination: Int64, limit: Int) async throws(JournalError) -> [UnindexedFile] {
    try await journal.read { store throws(SQLiteError) in
      try store.uploads.unindexed.files(
        at: try store.uploads.destinations.sharingNames(with: destination), limit: limit)
    }
  }

  /// As `UnindexedTable.named`.
  func named(
    at destination: Int64, after last: Int64, limit: Int
  ) async throws(JournalError) -> (paths: [BytePath], last: Int64) {
    try await journal.read { store throws(SQLiteError) in
      try store.uploads.unindexed.named(
        at: try store.uploads.destinations.sharingNames(with: destination), after: last, limit: limit)
    }
  }

  /// A file was found at the destination under its opaque name.
  func foundTaken(_ file: UnindexedFile, at destination: Int64) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in try store.uploads.unindexed.keepTaken(file, at: destination) }
  }

  /// An index at the destination has these files.
  func indexed(_ ids: [Int64], in index: SentIndex, at destination: Int64) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in
        try store.uploads.unindexed.note(ids, in: index, at: destination)
      }
    }
  }

  /// The indexes that were sent to a destination, or to another one with the same place and recipients. `areLost`: those that
  /// are to be replaced instead.
  func sentIndexes(at destination: Int64, areLost: Bool = false) async throws(JournalError) -> [SentIndex] {
    try await journal.read { store throws(SQLiteError) in
      try store.uploads.unindexed.sent(
        at: try store.uploads.destinations.sharingNames(with: destination), areLost: areLost)
    }
  }

  /// An index is not at the destination any more, or has other bytes.
  func lost(_ index: SentIndex) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in try store.uploads.unindexed.lose(index) }
    }
  }

  /// A lost index cannot be replaced.
  func forget(_ index: SentIndex) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in try store.uploads.unindexed.forget(index) }
    }
  }

  /// The destinations that have such files, by their ids.
  package func destinations() async throws(JournalError) -> [Int64: JournalDestination] {
    try await journal.read { store throws(SQLiteError) in
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
