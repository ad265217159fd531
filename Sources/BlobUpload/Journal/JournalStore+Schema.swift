import BlobSQLite

extension JournalStore {
  /// Raised with every change of the schema, which then also gets a step in `migrate`.
  static let schemaVersion: Int64 = 8

  func migrate() throws(SQLiteError) {
    try database.migrate(to: Self.schemaVersion) { (found: Int64) throws(SQLiteError) in
      if found == 1 {
        throw SQLiteError("open", database.path, code: 1, "it was made before the first release: delete it")
      }
      if found == 0 { try database.execute(Self.schema) }
      if found < 3 { try database.execute(Self.sentSchema) }
      if found < 4 { try database.execute(Self.hostSchema) }
      if found < 5 { try database.execute(Self.overrideSchema) }
      if found < 6 { try database.execute(Self.widthSchema) }
      if found < 7 { try database.execute(Self.listingSchema) }
      if found < 8 { try database.execute(Self.sentLengthSchema) }
      if found > 0, found < 7 { try removeQueries() }
    }
  }

  // `location`: NULL unknown, '' the same as `target`. States as in `JournalEntry.State`; 2 is done.
  // No id is given twice: a late note on what was removed, or by who was taken for dead, must not meet another's row.
  // For that, `removed` holds the highest id removed; AUTOINCREMENT would cost 1 us for each upload.
  // `finished` counts what is done, so that a status reads only what is not. It is kept by hand, in `settle`: triggers
  // on `upload` would double what an update costs.
  private static let schema = """
    CREATE TABLE process(
      id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL, boot TEXT NOT NULL, start INTEGER NOT NULL
    );
    CREATE TABLE destination(id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
    CREATE TABLE upload(
      id INTEGER PRIMARY KEY,
      destination INTEGER NOT NULL,
      state INTEGER NOT NULL,
      owner INTEGER,
      length INTEGER,
      acknowledged INTEGER NOT NULL,
      part_size INTEGER,
      created INTEGER NOT NULL,
      updated INTEGER NOT NULL,
      target TEXT NOT NULL,
      source BLOB NOT NULL,
      path BLOB NOT NULL,
      version TEXT,
      instance TEXT,
      content_type TEXT NOT NULL,
      location TEXT,
      error TEXT,
      session TEXT,
      UNIQUE(target, source)
    );
    CREATE TABLE removed(id INTEGER NOT NULL);
    INSERT INTO removed VALUES(0);
    CREATE INDEX unfinished ON upload(id) WHERE state <> 2;
    CREATE TABLE receipt(
      upload INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, held INTEGER NOT NULL, state TEXT,
      PRIMARY KEY(upload, number)
    ) WITHOUT ROWID;
    CREATE TABLE finished(destination INTEGER PRIMARY KEY, count INTEGER NOT NULL, bytes INTEGER NOT NULL);
    """

  // From version 4 on. What was learned of a host by being refused.
  private static let hostSchema = """
    CREATE TABLE host(origin TEXT PRIMARY KEY, largest_body INTEGER NOT NULL, noted INTEGER NOT NULL) WITHOUT ROWID;
    """

  // From version 5 on. Hosts that PATCH does not get through to.
  private static let overrideSchema = """
    CREATE TABLE override(origin TEXT PRIMARY KEY, noted INTEGER NOT NULL) WITHOUT ROWID;
    """

  // From version 6 on. How many requests at once a host was found to be worth, and whether it ever refused more.
  private static let widthSchema = """
    CREATE TABLE width(
      origin TEXT PRIMARY KEY, lanes INTEGER NOT NULL, refused INTEGER NOT NULL, noted INTEGER NOT NULL
    ) WITHOUT ROWID;
    """

  // From version 7 on. Pushes that have not read all their sources; the sources are separated by NUL.
  private static let listingSchema = """
    CREATE TABLE listing(
      id INTEGER PRIMARY KEY AUTOINCREMENT, destination INTEGER NOT NULL, owner INTEGER, created INTEGER NOT NULL,
      sources BLOB NOT NULL, UNIQUE(destination, sources)
    );
    """

  // From version 8 on. The length of the version that was last sent as a whole, in a row that is not done any more. A row
  // that is done has it in `length`.
  private static let sentLengthSchema = "ALTER TABLE upload ADD COLUMN sent_length INTEGER;"

  // From version 3 on. Ranges of runs that have ended; those of a run under way are in its `SentLog`.
  private static let sentSchema = """
    CREATE TABLE sent(
      upload INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
      PRIMARY KEY(upload, start)
    ) WITHOUT ROWID;
    """
}
