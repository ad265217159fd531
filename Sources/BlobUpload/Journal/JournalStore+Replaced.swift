import BlobSQLite

/// Several sources may be sent to one name, one after the other. What the name holds is the last one's, so that nothing is
/// known of the others any more.
extension JournalStore {
  /// Inside a transaction. Forgets that other sources were sent to where the uploads `first...last` go: these have been
  /// stored there, or may replace what is there.
  func forgetReplaced(by first: Int64, through last: Int64) throws(SQLiteError) {
    // Two files of one push have one name only where they have the same bytes.
    let select = try database.statement(
      """
      SELECT other.id FROM upload AS new CROSS JOIN upload AS other ON other.target = new.target
      WHERE new.id BETWEEN ?1 AND ?2 AND other.state = 2 AND other.id NOT BETWEEN ?1 AND ?2
      """)
    try select.bind(1, first)
    try select.bind(2, last)
    var replaced: [Int64] = []
    do {
      defer { select.reset() }
      while try select.step() { replaced.append(select.int(0)) }
    }
    for id in replaced {
      if let row = try glance(id) { try remove(id, row) }
    }
  }

  /// Inside a transaction, after claims for a destination: uploads that may replace a file may do so from now on.
  func forgetReplaced(by claims: [JournalClaim], at destination: Int64) throws(SQLiteError) {
    guard try self.destination(destination).overwrite else { return }
    for claim in claims {
      switch claim {
      case .fresh(let id), .replaced(let id, _): try forgetReplaced(by: id, through: id)
      case .resume(let entry), .unsure(let entry): try forgetReplaced(by: entry.id, through: entry.id)
      case .done, .busy: break
      }
    }
  }
}

/// Tells of most new entries, without a look at the database, that no other source was sent to the same place: a look for
/// each takes a fortieth of all work for a small file.
struct ClaimedTargets {
  /// The journal had no entry, and no other process, when this store began, and no other process has come since.
  var areAll = false
  /// A Bloom filter of the keys of this store's entries. Once it is full, it says of every key that it may be there.
  private var bits = [UInt64](repeating: 0, count: 8192)
  /// Entries whose key may have been that of an earlier one.
  private var shared: Set<Int64> = []

  mutating func note(_ key: String, of id: Int64) {
    let hash = UInt(bitPattern: key.hashValue)
    var isKnown = true
    for place in [hash & 0x7FFFF, hash >> 19 & 0x7FFFF] {
      let bit = UInt64(1) << UInt64(place & 63)
      if bits[Int(place >> 6)] & bit == 0 { isKnown = false }
      bits[Int(place >> 6)] |= bit
    }
    if isKnown { shared.insert(id) }
  }

  /// Whether one of these entries may have the key of an earlier one, of this store. They are ended.
  mutating func mayBeShared(_ ids: some Sequence<Int64>) -> Bool {
    if shared.isEmpty { return false }
    return ids.reduce(false) { (shared.remove($1) != nil) || $0 }
  }
}

extension JournalStore {
  /// Whether other sources may have been sent to where these new entries go.
  func mayReplace(_ ids: some Sequence<Int64>) throws(SQLiteError) -> Bool {
    let isShared = targets.mayBeShared(ids)
    if !targets.areAll || isShared { return true }
    // Ids of processes are given once.
    let latest = try database.statement("SELECT seq FROM sqlite_sequence WHERE name = 'process'").first { $0.int(0) }
    if latest != ownerID { targets.areAll = false }
    return !targets.areAll
  }
}
