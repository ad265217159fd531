import BlobHTTP
import BlobSQLite

/// The tables `host`, `override` and `width`: facts about hosts, or the proxies before them, that earlier requests have shown.
struct HostTable {
  let database: Database

  /// Seconds after which what was learned about a host is ignored.
  private static let patience: Int64 = 30 * 86_400

  func largestBody(at origin: String) throws(SQLiteError) -> Int64? {
    let select = try database.statement("SELECT largest_body FROM host WHERE origin = ?1 AND noted > ?2")
    try select.bind(1, origin)
    try select.bind(2, currentSeconds() - Self.patience)
    return try select.first { $0.int(0) }
  }

  func keepLargestBody(_ bytes: Int64, at origin: String) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      let insert = try database.statement("INSERT OR REPLACE INTO host(origin, largest_body, noted) VALUES(?1, ?2, ?3)")
      try insert.bind(1, origin)
      try insert.bind(2, bytes)
      try insert.bind(3, currentSeconds())
      try insert.run()
    }
  }

  func needsOverride(at origin: String) throws(SQLiteError) -> Bool {
    let select = try database.statement("SELECT 1 FROM override WHERE origin = ?1 AND noted > ?2")
    try select.bind(1, origin)
    try select.bind(2, currentSeconds() - Self.patience)
    return try select.first { $0.int(0) } != nil
  }

  func keepOverride(_ isNeeded: Bool, at origin: String) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      let delete = try database.statement("DELETE FROM override WHERE origin = ?1")
      try delete.bind(1, origin)
      try delete.run()
      if !isNeeded { return }
      let insert = try database.statement("INSERT INTO override(origin, noted) VALUES(?1, ?2)")
      try insert.bind(1, origin)
      try insert.bind(2, currentSeconds())
      try insert.run()
    }
  }

  func width(at origin: String) throws(SQLiteError) -> LearnedConcurrency? {
    let select = try database.statement("SELECT lanes, refused FROM width WHERE origin = ?1 AND noted > ?2")
    try select.bind(1, origin)
    try select.bind(2, currentSeconds() - Self.patience)
    return try select.first { LearnedConcurrency(width: Int($0.int(0)), wasRefused: $0.int(1) != 0) }
  }

  func keepWidth(_ width: LearnedConcurrency, at origin: String) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      let insert = try database.statement(
        "INSERT OR REPLACE INTO width(origin, lanes, refused, noted) VALUES(?1, ?2, ?3, ?4)")
      try insert.bind(1, origin)
      try insert.bind(2, Int64(width.width))
      try insert.bind(3, width.wasRefused ? 1 : 0)
      try insert.bind(4, currentSeconds())
      try insert.run()
    }
  }
}
