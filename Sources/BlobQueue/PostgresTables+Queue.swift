import BlobPostgres

extension PostgresTables {
  /// The tables of a queue that several machines share.
  ///
  /// An item has one row, one for each place at a destination. Its state is 0 for waiting, 1 for claimed, 2 for done, 3 for
  /// failed and 4 for refused. `fence` counts its claims and takeovers, `seq` the changes under the present one. `bound` names
  /// the only machine that may claim it; '' is any. `worker` is the process that has it, or had it last. `record` is a
  /// `ResumableUpload`. Most rows of an old queue are done, so the indexes leave these out.
  static let queue = PostgresTables(
    version: "queue_version",
    migrations: [
      [
        """
        CREATE TABLE fullbore.queue_destinations (
          id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, json text NOT NULL)
        """,
        "CREATE UNIQUE INDEX queue_destinations_by_json ON fullbore.queue_destinations (md5(json))",
        """
        CREATE TABLE fullbore.queue_workers (
          worker text PRIMARY KEY, machine text NOT NULL, pid integer NOT NULL, lease timestamptz NOT NULL)
        """,
        """
        CREATE TABLE fullbore.queue_pushes (
          id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, destination bigint NOT NULL, sources text NOT NULL,
          machine text NOT NULL, worker text NOT NULL, is_listed boolean NOT NULL DEFAULT false,
          begun timestamptz NOT NULL DEFAULT clock_timestamp())
        """,
        "CREATE INDEX queue_pushes_unlisted ON fullbore.queue_pushes (destination) WHERE NOT is_listed",
        """
        CREATE TABLE fullbore.queue_items (
          id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place uuid NOT NULL, destination bigint NOT NULL,
          push bigint NOT NULL, state smallint NOT NULL DEFAULT 0, bound text NOT NULL DEFAULT '', machine text NOT NULL,
          worker text, fence bigint NOT NULL DEFAULT 0, seq bigint NOT NULL DEFAULT 0, length bigint,
          acknowledged bigint NOT NULL DEFAULT 0, version text, source bytea NOT NULL, record text NOT NULL, error text,
          changed timestamptz NOT NULL DEFAULT clock_timestamp())
        WITH (autovacuum_vacuum_scale_factor = 0.02)
        """,
        "CREATE UNIQUE INDEX queue_items_by_place ON fullbore.queue_items (place)",
        "CREATE INDEX queue_items_waiting ON fullbore.queue_items (destination, bound, id) WHERE state = 0",
        "CREATE INDEX queue_items_claimed ON fullbore.queue_items (worker) WHERE state = 1",
        "CREATE INDEX queue_items_failed ON fullbore.queue_items (destination, id) WHERE state >= 3",
        "CREATE INDEX queue_items_of_push ON fullbore.queue_items (push, state) WHERE state <> 2",
        """
        CREATE TABLE fullbore.queue_parts (
          item bigint NOT NULL, number integer NOT NULL, start bigint NOT NULL, held bigint NOT NULL, state text NOT NULL,
          PRIMARY KEY (item, number))
        """,
        // Sixteen rows for each sum, so that changes by several connections do not wait for each other.
        """
        CREATE TABLE fullbore.queue_totals (
          destination bigint NOT NULL, state smallint NOT NULL, stripe integer NOT NULL, count numeric NOT NULL,
          bytes numeric NOT NULL, acknowledged numeric NOT NULL, PRIMARY KEY (destination, state, stripe))
        WITH (fillfactor = 20)
        """,
        """
        CREATE FUNCTION fullbore.queue_count() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF TG_OP = 'INSERT' THEN
            INSERT INTO fullbore.queue_totals AS t
            SELECT destination, state, pg_backend_pid() % 16, count(*), sum(coalesce(length, 0)), sum(acknowledged)
            FROM new_rows GROUP BY destination, state ORDER BY destination, state
            ON CONFLICT (destination, state, stripe) DO UPDATE SET count = t.count + EXCLUDED.count,
              bytes = t.bytes + EXCLUDED.bytes, acknowledged = t.acknowledged + EXCLUDED.acknowledged;
          ELSE
            INSERT INTO fullbore.queue_totals AS t
            SELECT destination, state, pg_backend_pid() % 16, sum(n), sum(b), sum(a) FROM (
              SELECT destination, state, 1 AS n, coalesce(length, 0)::numeric AS b, acknowledged::numeric AS a
              FROM new_rows
              UNION ALL
              SELECT destination, state, -1, -coalesce(length, 0)::numeric, -acknowledged::numeric FROM old_rows) c
            GROUP BY destination, state HAVING sum(n) <> 0 OR sum(b) <> 0 OR sum(a) <> 0 ORDER BY destination, state
            ON CONFLICT (destination, state, stripe) DO UPDATE SET count = t.count + EXCLUDED.count,
              bytes = t.bytes + EXCLUDED.bytes, acknowledged = t.acknowledged + EXCLUDED.acknowledged;
          END IF;
          RETURN NULL;
        END $$
        """,
        """
        CREATE TRIGGER queue_items_added AFTER INSERT ON fullbore.queue_items REFERENCING NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION fullbore.queue_count()
        """,
        """
        CREATE TRIGGER queue_items_changed AFTER UPDATE ON fullbore.queue_items
        REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
        FOR EACH STATEMENT EXECUTE FUNCTION fullbore.queue_count()
        """,
      ]
    ])
}
