import BlobSQLite

extension JournalStore {
  /// Raised with every change of the schema, which then also gets a step in `migrate`.
  static let schemaVersion: Int64 = 1

  func migrate() throws(SQLiteError) {
    try database.migrate(to: Self.schemaVersion) { (found: Int64) throws(SQLiteError) in
      if found < 1 { try database.execute(Self.schema1) }
    }
  }

  // `location`: NULL unknown, '' the same as `target`. States as in `JournalEntry.State`; 2 is done.
  // AUTOINCREMENT: a late note on what was removed, or by who was taken for dead, must not meet another's row.
  // `tally` follows by triggers, so that a status over a million rows reads a few.
  private static let schema1 = """
    CREATE TABLE process(
      id INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL, boot TEXT NOT NULL, start INTEGER NOT NULL
    );
    CREATE TABLE destination(id INTEGER PRIMARY KEY, json TEXT NOT NULL UNIQUE);
    CREATE TABLE upload(
      id INTEGER PRIMARY KEY AUTOINCREMENT,
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
    CREATE INDEX unfinished ON upload(owner) WHERE state <> 2;
    CREATE TABLE receipt(
      upload INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, held INTEGER NOT NULL, state TEXT,
      PRIMARY KEY(upload, number)
    ) WITHOUT ROWID;
    CREATE TABLE tally(
      destination INTEGER NOT NULL, state INTEGER NOT NULL, count INTEGER NOT NULL, bytes INTEGER NOT NULL,
      acknowledged INTEGER NOT NULL,
      PRIMARY KEY(destination, state)
    ) WITHOUT ROWID;

    CREATE TRIGGER destination_made AFTER INSERT ON destination BEGIN
      INSERT INTO tally VALUES(NEW.id, 0, 0, 0, 0), (NEW.id, 1, 0, 0, 0), (NEW.id, 2, 0, 0, 0), (NEW.id, 3, 0, 0, 0);
    END;
    CREATE TRIGGER upload_made AFTER INSERT ON upload BEGIN
      UPDATE tally SET count = count + 1, bytes = bytes + ifnull(NEW.length, 0),
        acknowledged = acknowledged + NEW.acknowledged
        WHERE destination = NEW.destination AND state = NEW.state;
    END;
    CREATE TRIGGER upload_moved AFTER UPDATE OF destination, state, length, acknowledged ON upload
      WHEN OLD.state <> NEW.state OR OLD.destination <> NEW.destination OR OLD.length IS NOT NEW.length
        OR OLD.acknowledged <> NEW.acknowledged BEGIN
      UPDATE tally SET count = count - 1, bytes = bytes - ifnull(OLD.length, 0),
        acknowledged = acknowledged - OLD.acknowledged
        WHERE destination = OLD.destination AND state = OLD.state;
      UPDATE tally SET count = count + 1, bytes = bytes + ifnull(NEW.length, 0),
        acknowledged = acknowledged + NEW.acknowledged
        WHERE destination = NEW.destination AND state = NEW.state;
    END;
    CREATE TRIGGER upload_removed AFTER DELETE ON upload BEGIN
      UPDATE tally SET count = count - 1, bytes = bytes - ifnull(OLD.length, 0),
        acknowledged = acknowledged - OLD.acknowledged
        WHERE destination = OLD.destination AND state = OLD.state;
      DELETE FROM receipt WHERE upload = OLD.id;
    END;
    CREATE TRIGGER session_ended AFTER UPDATE OF session ON upload
      WHEN OLD.session IS NOT NULL AND NEW.session IS NULL BEGIN
      DELETE FROM receipt WHERE upload = NEW.id;
    END;
    """
}
