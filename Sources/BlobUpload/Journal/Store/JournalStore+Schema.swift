import BlobSQLite

extension JournalStore {
  /// Incremented with every change of the schema, which also needs a step in `migrate`.
  static let schemaVersion: Int64 = 20

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
      if found < 10 { try database.execute(JobTable.schema) }
      if found < 11 { try database.execute(MetadataTable.schema) }
      if found < 12 { try database.execute(NumberTable.schema) }
      if found < 13 { try database.execute(ComparedTable.schema) }
      if found < 14 { try database.execute(SealedTable.schema) }
      if 14...18 ~= found { try database.execute(SealedTable.addedAlgorithm) }
      if found < 15 { try database.execute(UnindexedTable.schema) }
      if found < 16 { try database.execute(SealTable.schema) }
      if found == 15 || found == 16 {
        try database.execute(UnindexedTable.addedColumns)
        try database.execute(UnindexedTable.forgottenNames)
      }
      if found < 17 { try database.execute(UnindexedTable.indexSchema) }
      if found == 17 { try database.execute(UnindexedTable.addedIndexColumns) }
      if found < 19 { try database.execute(TwinTable.schema) }
      if found < 20 { try database.execute(DeletedTable.schema) }
      if found > 0, found < 7 { try uploads.destinations.removeQueries() }
      if found > 0, found < 9 { try PlaceMigration(uploads, replaced).run() }
    }
  }

  // `location`: NULL is unknown, '' is the same as `target`. States as in `JournalEntry.State`; 2 is done. Ids are
  // never reused: a late note about a removed entry, or from a process that was assumed dead, must not change another
  // row. `removed` holds the highest removed id for this purpose; AUTOINCREMENT would cost 1 us per upload. `finished`
  // counts the rows that are done, so that a summary reads only the others. `UploadTable.settle` updates it: triggers on `upload`
  // would double the cost of an update.
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

  // Since version 4. Limits of hosts, learned from rejected requests.
  private static let hostSchema = """
    CREATE TABLE host(origin TEXT PRIMARY KEY, largest_body INTEGER NOT NULL, noted INTEGER NOT NULL) WITHOUT ROWID;
    """

  // Since version 5. Hosts that cannot be reached with PATCH.
  private static let overrideSchema = """
    CREATE TABLE override(origin TEXT PRIMARY KEY, noted INTEGER NOT NULL) WITHOUT ROWID;
    """

  // Since version 6. The best number of concurrent requests for a host, and whether the host ever rejected more.
  private static let widthSchema = """
    CREATE TABLE width(
      origin TEXT PRIMARY KEY, lanes INTEGER NOT NULL, refused INTEGER NOT NULL, noted INTEGER NOT NULL
    ) WITHOUT ROWID;
    """

  // Since version 7. Pushes that have not read all their sources; the sources are separated by NUL.
  private static let listingSchema = """
    CREATE TABLE listing(
      id INTEGER PRIMARY KEY AUTOINCREMENT, destination INTEGER NOT NULL, owner INTEGER, created INTEGER NOT NULL,
      sources BLOB NOT NULL, UNIQUE(destination, sources)
    );
    """

  // Since version 8. The length of the version that was last sent completely, for a row that is no longer done. A row
  // that is done has it in `length`.
  private static let sentLengthSchema = "ALTER TABLE upload ADD COLUMN sent_length INTEGER;"

  // Since version 3. Ranges of runs that have ended; those of a run in progress are in its `SentLog`.
  private static let sentSchema = """
    CREATE TABLE sent(
      upload INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
      PRIMARY KEY(upload, start)
    ) WITHOUT ROWID;
    """
}
