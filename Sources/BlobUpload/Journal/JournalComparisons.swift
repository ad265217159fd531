import BlobSQLite

/// The files, in a journal, that were compared with those at a destination.
package struct JournalComparisons: Sendable {
  let journal: Journal

  /// The versions in which the files of these intents were the same when they were compared last; nil: unknown, or they differed.
  package func versions(of intents: [JournalIntent]) async throws(JournalError) -> [ComparedVersion?] {
    try await journal.read { store throws(SQLiteError) in
      var versions: [ComparedVersion?] = []
      for intent in intents { versions.append(try store.compared.version(intent)) }
      return versions
    }
  }

  /// The entries among these whose files were compared.
  func uploads(among ids: [Int64]) async throws(JournalError) -> Set<Int64> {
    try await journal.read { store throws(SQLiteError) in try store.compared.uploads(among: ids) }
  }

  /// Stores the versions that were the same; nil: they differed, so that an earlier result is deleted. Once this has returned,
  /// the results survive a SIGKILL.
  package func keep(_ compared: [(JournalIntent, ComparedVersion?)]) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.database.transaction { () throws(SQLiteError) in
        for (intent, version) in compared {
          if let version { try store.compared.keep(version, of: intent) } else { try store.compared.forget(intent) }
        }
      }
    }
  }
}
