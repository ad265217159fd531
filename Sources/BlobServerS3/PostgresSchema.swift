import BlobPostgres

/// The tables that the servers of one database share. Each change of them is a migration, which is never edited afterwards.
enum PostgresSchema {
  private static let migrations = [
    """
    CREATE TABLE fullbore.nodes (node text PRIMARY KEY, lease timestamptz NOT NULL);
    CREATE TABLE fullbore.uploads (
      id text PRIMARY KEY, place text NOT NULL, record text, is_finished boolean NOT NULL DEFAULT false,
      fence bigint NOT NULL DEFAULT 1, node text, previous text,
      changed timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE INDEX uploads_by_change ON fullbore.uploads (place, changed);
    CREATE INDEX uploads_unfinished ON fullbore.uploads (place) WHERE NOT is_finished;
    CREATE TABLE fullbore.notes (
      id text NOT NULL REFERENCES fullbore.uploads ON DELETE CASCADE, number integer NOT NULL, line text NOT NULL,
      PRIMARY KEY (id, number));
    """,
    """
    CREATE TABLE fullbore.intents (
      id text PRIMARY KEY, place text NOT NULL, object text NOT NULL, node text NOT NULL,
      is_taken boolean NOT NULL DEFAULT false, kept timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE INDEX intents_by_place ON fullbore.intents (place);
    """,
  ]

  /// Brings the tables to the version of this program. Servers that start at the same time wait for each other.
  static func prepare(_ pool: PostgresPool) throws(PostgresError) {
    // If this fails, the connection is closed with its transaction.
    let connection = try pool.connect()
    try connection.query("BEGIN")
    try connection.query("SELECT pg_advisory_xact_lock(7308613709768159842)", within: .seconds(60))
    if try connection.query("SELECT 1 FROM pg_namespace WHERE nspname = 'fullbore'").isEmpty {
      try connection.query("CREATE SCHEMA fullbore")
    }
    try connection.query("CREATE TABLE IF NOT EXISTS fullbore.version (version integer NOT NULL)")
    let found = try connection.query("SELECT max(version) FROM fullbore.version").first?.first ?? nil
    let version = found.flatMap { Int($0) } ?? 0
    if version > migrations.count {
      throw PostgresError("its tables are those of a newer version of fullbore", isTemporary: false)
    }
    for (number, migration) in migrations.enumerated().dropFirst(version) {
      for statement in migration.split(separator: ";\n") { try connection.query(String(statement)) }
      try connection.query("INSERT INTO fullbore.version VALUES ($1::integer)", ["\(number + 1)"])
    }
    try connection.query("COMMIT")
  }
}
