import BlobSQLite
import Blobs

/// What a journal knows about the files of one folder, or the rows of one table, at one destination.
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

extension Journal {
  /// The history of the files in and below `folder`, an absolute path. `destination` is the journal's id of a
  /// destination; pushes to the same URL with other options count too.
  public func history(of folder: BytePath, destination: Int64) throws(JournalError) -> SourceHistory {
    var name = folder.bytes
    while name.last == UInt8(ascii: "/") { name.removeLast() }
    return try history(ofNamesBeginning: name + [UInt8(ascii: "/")], destination: destination)
  }

  /// The history of all sources whose names begin with `prefix`, which must end in an ASCII character.
  public func history(
    ofNamesBeginning prefix: [UInt8], destination: Int64
  ) throws(JournalError) -> SourceHistory {
    try read { store throws(SQLiteError) in try store.history(ofNamesBeginning: prefix, destination) }
  }
}

extension JournalStore {
  fileprivate func history(
    ofNamesBeginning prefix: [UInt8], _ destination: Int64
  ) throws(SQLiteError) -> SourceHistory {
    var history = SourceHistory(hasSent: false, unfinished: 0)
    guard let last = prefix.last, last < .max else { return history }
    // The upper bound of all names with this prefix: the prefix with its last character replaced by the next one.
    let end = Array(prefix.dropLast()) + [last + 1]
    for id in try destinationIDs(at: self.destination(destination).place) {
      let unfinished = try database.statement(
        """
        SELECT count(*) FROM upload INDEXED BY unfinished
        WHERE state <> 2 AND destination = ?3 AND source >= ?1 AND source < ?2 AND target NOT LIKE '%#left-' || id
          AND NOT (state = 4 AND location IS NOT NULL)
        """)
      history.unfinished += Int(clamping: try first(unfinished, prefix, end, id) ?? 0)
      if history.hasSent { continue }
      let done = try database.statement(
        "SELECT 1 FROM upload WHERE state = 2 AND destination = ?3 AND source >= ?1 AND source < ?2 LIMIT 1")
      history.hasSent = try first(done, prefix, end, id) != nil
    }
    return history
  }

  private func first(
    _ select: Statement, _ prefix: [UInt8], _ end: [UInt8], _ destination: Int64
  ) throws(SQLiteError) -> Int64? {
    try select.bind(1, prefix)
    try select.bind(2, end)
    try select.bind(3, destination)
    return try select.first { $0.int(0) }
  }
}
