import BlobPostgres

extension PostgresTables {
  /// The tables that the servers of one database share.
  static let servers = PostgresTables(
    version: "version",
    migrations: [
      [
        "CREATE TABLE fullbore.nodes (node text PRIMARY KEY, lease timestamptz NOT NULL)",
        """
        CREATE TABLE fullbore.uploads (
          id text PRIMARY KEY, place text NOT NULL, record text, is_finished boolean NOT NULL DEFAULT false,
          fence bigint NOT NULL DEFAULT 1, node text, previous text,
          changed timestamptz NOT NULL DEFAULT clock_timestamp())
        """,
        "CREATE INDEX uploads_by_change ON fullbore.uploads (place, changed)",
        "CREATE INDEX uploads_unfinished ON fullbore.uploads (place) WHERE NOT is_finished",
        """
        CREATE TABLE fullbore.notes (
          id text NOT NULL REFERENCES fullbore.uploads ON DELETE CASCADE, number integer NOT NULL, line text NOT NULL,
          PRIMARY KEY (id, number))
        """,
      ],
      [
        """
        CREATE TABLE fullbore.intents (
          id text PRIMARY KEY, place text NOT NULL, object text NOT NULL, node text NOT NULL,
          is_taken boolean NOT NULL DEFAULT false, kept timestamptz NOT NULL DEFAULT clock_timestamp())
        """,
        "CREATE INDEX intents_by_place ON fullbore.intents (place)",
      ],
    ])
}
