import BlobCrypto
import BlobSQLite
import Blobs

/// The seals of a journal's uploads: the key for those that are unfinished, and the facts about those that are done.
struct JournalSeals: Sendable {
  let journal: Journal

  /// The key, which is made if there is none.
  func key() async throws(JournalError) -> [UInt8] {
    if let key = journal.knownKey.withLock({ $0 }) { return key }
    let file = SealKeyFile(beside: journal.path)
    let result: Result<[UInt8], JournalError> = try await journal.write { _, _ throws(SQLiteError) in
      Result { () throws(JournalError) in
        if let key = file.read() { return key }
        let key = FileSeal.newBoxKey()
        try file.make(key)
        return key
      }
    }
    let key = try result.get()
    journal.knownKey.withLock { $0 = key }
    return key
  }

  /// nil: there is none, so no seal of an earlier run can be opened.
  func knownKey() async throws(JournalError) -> [UInt8]? {
    if let key = journal.knownKey.withLock({ $0 }) { return key }
    let file = SealKeyFile(beside: journal.path)
    let key = try await journal.write { _, _ throws(SQLiteError) in file.read() }
    journal.knownKey.withLock { $0 = key }
    return key
  }

  /// The encrypted seal of an upload that is not done; nil: there is none.
  func box(of id: Int64) async throws(JournalError) -> String? {
    try await journal.read { store throws(SQLiteError) in try store.uploads.seals.box(of: id) }
  }

  /// Deletes the key, unless an unfinished upload or another process may need it. Writes all notes first.
  func forgetUnusedKey(_ journal: isolated Journal) throws(JournalError) {
    let file = SealKeyFile(beside: journal.path)
    if !file.exists { return }
    try journal.write { store, _ throws(SQLiteError) in
      if try store.owners.others().isEmpty, try !store.uploads.seals.isNeeded() { file.delete() }
    }
    journal.knownKey.withLock { $0 = nil }
  }

  /// By the ids of the entries; those of which nothing is known are left out.
  func contents(of ids: [Int64]) async throws(JournalError) -> [Int64: SealedContent] {
    if ids.isEmpty { return [:] }
    return try await journal.read { store throws(SQLiteError) in try store.uploads.contents.contents(of: ids) }
  }
}
