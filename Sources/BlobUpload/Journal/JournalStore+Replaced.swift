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
