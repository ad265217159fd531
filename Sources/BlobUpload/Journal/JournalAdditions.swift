import BlobSQLite

/// The arguments, in a journal, with which a background uploader has added an upload, and which uploader goes on with it.
package struct JournalAdditions: Sendable {
  let journal: Journal

  /// The addition that `keep` has stored of an upload; nil: it has stored none.
  package func addition(of id: Int64) async throws(JournalError) -> JournalAddition? {
    try await journal.read { store throws(SQLiteError) in try store.metadata.addition(of: id) }
  }

  /// The same for several uploads, by their ids. Uploads without stored values are left out.
  package func all(of ids: [Int64]) async throws(JournalError) -> [Int64: JournalAddition] {
    try await journal.read { store throws(SQLiteError) in try store.metadata.additions(of: ids) }
  }

  /// Stores that `uploader` goes on with these uploads, if `old` does at present; nil: if none does. Returns those with
  /// which `uploader` goes on now.
  package func assign(_ ids: [Int64], from old: String?, to uploader: String) async throws(JournalError) -> Set<Int64> {
    if ids.isEmpty { return [] }
    return try await journal.read { store throws(SQLiteError) in
      try store.uploads.transaction { () throws(SQLiteError) in
        var assigned: Set<Int64> = []
        for id in ids {
          let stored = try store.metadata.addition(of: id)
          guard stored?.uploader == old, let entry = try store.uploads.entry(id: id) else { continue }
          var addition = stored ?? JournalAddition(metadata: [:], contentType: entry.intent.contentType, version: nil)
          addition.uploader = uploader
          try store.metadata.keep(addition, of: id)
          assigned.insert(id)
        }
        return assigned
      }
    }
  }

  /// Removes what was stored of uploads that are done or superseded. Returns those whose sources were added again since.
  package func dropDone() async throws(JournalError) -> [JournalEntry] {
    try await journal.read { store throws(SQLiteError) in
      let ids = try store.uploads.transaction { () throws(SQLiteError) in try store.metadata.dropDone() }
      var entries: [JournalEntry] = []
      for id in ids { if let entry = try store.uploads.entry(id: id) { entries.append(entry) } }
      return entries
    }
  }

  /// Stores what an upload was added with, for the process that begins it. nil: nothing is stored any more.
  package func keep(_ addition: JournalAddition?, of id: Int64) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.uploads.transaction { () throws(SQLiteError) in
        try store.metadata.keep(addition, of: id)
      }
    }
  }

  /// The same for the entry of this source and place, if there is one.
  package func keep(_ addition: JournalAddition, of intent: JournalIntent) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.uploads.transaction { () throws(SQLiteError) in
        guard let entry = try store.uploads.entry(intent.key, intent.source) else { return }
        try store.metadata.keep(addition, of: entry.id)
      }
    }
  }

  /// Removes what the entry of this source and place was added with, unless that is of another version.
  package func drop(ofVersion version: String, _ intent: JournalIntent) async throws(JournalError) {
    try await journal.read { store throws(SQLiteError) in
      try store.uploads.transaction { () throws(SQLiteError) in
        guard let entry = try store.uploads.entry(intent.key, intent.source),
          try store.metadata.addition(of: entry.id)?.version == version
        else { return }
        try store.metadata.keep(nil, of: entry.id)
      }
    }
  }
}
