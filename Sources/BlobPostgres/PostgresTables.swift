/// Tables of one purpose in the schema `fullbore` of a database. Each change of them is a migration, which is never edited
/// afterwards.
package struct PostgresTables: Sendable {
  private let version: String
  private let migrations: [[String]]

  /// `version`: the name of the table that has the number of the migrations made. `migrations`: the statements of each.
  package init(version: String, migrations: [[String]]) { (self.version, self.migrations) = (version, migrations) }

  /// Brings the tables to the version of this program. Programs that start at the same time wait for each other. Blocks.
  package func prepare(_ pool: PostgresPool) throws(PostgresError) {
    // If this fails, the connection is closed with its transaction.
    let connection = try pool.connect()
    try connection.query("BEGIN")
    try connection.query("SELECT pg_advisory_xact_lock(7308613709768159842)", within: .seconds(60))
    if try connection.query("SELECT 1 FROM pg_namespace WHERE nspname = 'fullbore'").isEmpty {
      try connection.query("CREATE SCHEMA fullbore")
    }
    try connection.query("CREATE TABLE IF NOT EXISTS fullbore.\(version) (version integer NOT NULL)")
    let found = try connection.query("SELECT max(version) FROM fullbore.\(version)").first?.first ?? nil
    let made = found.flatMap { Int($0) } ?? 0
    if made > migrations.count {
      throw PostgresError("its tables are those of a newer version of fullbore", isTemporary: false)
    }
    for (number, migration) in migrations.enumerated().dropFirst(made) {
      for statement in migration { try connection.query(statement) }
      try connection.query("INSERT INTO fullbore.\(version) VALUES ($1::integer)", ["\(number + 1)"])
    }
    try connection.query("COMMIT")
  }
}
