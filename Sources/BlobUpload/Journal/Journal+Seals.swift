import BlobCrypto
import BlobSQLite
import Blobs

// The key for the seals of unfinished uploads.
extension Journal {
  /// The key, which is made if there is none.
  nonisolated func sealKey() async throws(JournalError) -> [UInt8] {
    if let key = knownKey.withLock({ $0 }) { return key }
    return try await readOrMakeSealKey()
  }

  private func readOrMakeSealKey() throws(JournalError) -> [UInt8] {
    let file = SealKeyFile(beside: path)
    let result: Result<[UInt8], JournalError> = try write { _, _ throws(SQLiteError) in
      Result { () throws(JournalError) in
        if let key = file.read() { return key }
        let key = FileSeal.newBoxKey()
        try file.make(key)
        return key
      }
    }
    let key = try result.get()
    knownKey.withLock { $0 = key }
    return key
  }

  /// nil: there is none, so no seal of an earlier run can be opened.
  func knownSealKey() throws(JournalError) -> [UInt8]? {
    if let key = knownKey.withLock({ $0 }) { return key }
    let file = SealKeyFile(beside: path)
    let key = try write { _, _ throws(SQLiteError) in file.read() }
    knownKey.withLock { $0 = key }
    return key
  }

  /// The encrypted seal of an upload that is not done; nil: there is none.
  func seal(of id: Int64) throws(JournalError) -> String? {
    try read { store throws(SQLiteError) in try store.uploads.seals.box(of: id) }
  }

  /// Deletes the key, unless an unfinished upload or another process may need it. Writes all notes first.
  func forgetUnusedSealKey() throws(JournalError) {
    let file = SealKeyFile(beside: path)
    if !file.exists { return }
    try write { store, _ throws(SQLiteError) in
      if try store.owners.others().isEmpty, try !store.uploads.seals.isNeeded() { file.delete() }
    }
    knownKey.withLock { $0 = nil }
  }
}

// The facts about sealed files that are done.
extension Journal {
  /// By the ids of the entries; those of which nothing is known are left out.
  func sealedContents(of ids: [Int64]) throws(JournalError) -> [Int64: SealedContent] {
    if ids.isEmpty { return [:] }
    return try read { store throws(SQLiteError) in try store.uploads.contents.contents(of: ids) }
  }
}
