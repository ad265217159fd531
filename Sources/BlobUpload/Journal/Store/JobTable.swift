import BlobSQLite

/// Uploads that the system makes, and assets of which nothing is left to send: the tables `job` and `settled`.
struct JobTable {
  let database: Database

  /// `key`: as `JournalJob.key`.
  func job(_ key: String) throws(SQLiteError) -> JournalJob? {
    let select = try database.statement("SELECT * FROM job WHERE url = ?1")
    try select.bind(1, key)
    return try select.first { JournalJob(row: $0) }
  }

  /// The jobs at a URL, whatever their accounts. The key of a job is its URL, or begins with it and `#`, after which `$` comes.
  func jobs(at url: String) throws(SQLiteError) -> [JournalJob] {
    let select = try database.statement(
      "SELECT * FROM job WHERE url = ?1 OR url >= ?1 || '#' AND url < ?1 || '$' ORDER BY url")
    try select.bind(1, url)
    return try jobs(select)
  }

  func keep(_ job: JournalJob) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      let insert = try database.statement(
        """
        INSERT OR REPLACE INTO job(url, source, done, version, state, attempts, error, updated)
        VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        """)
      try insert.bind(1, job.key)
      try insert.bind(2, job.source)
      try insert.bind(3, job.done)
      try insert.bind(4, job.version)
      try insert.bind(5, job.state.rawValue)
      try insert.bind(6, Int64(job.attempts))
      try insert.bind(7, job.error)
      try insert.bind(8, job.updated)
      try insert.run()
    }
  }

  func open() throws(SQLiteError) -> [JournalJob] {
    try jobs(database.statement("SELECT * FROM job WHERE state IN (1, 2, 3) ORDER BY updated, url"))
  }

  func refused() throws(SQLiteError) -> [JournalJob] {
    try jobs(database.statement("SELECT * FROM job WHERE state = 4 ORDER BY updated DESC, url"))
  }

  func waiting() throws(SQLiteError) -> [JournalJob] {
    try jobs(database.statement("SELECT * FROM job WHERE state = 5 ORDER BY updated DESC, url"))
  }

  func settledVersion(of asset: String, at folder: String) throws(SQLiteError) -> String? {
    let select = try database.statement("SELECT version FROM settled WHERE folder = ?1 AND asset = ?2")
    try select.bind(1, folder)
    try select.bind(2, asset)
    return try select.first { $0.text(0) } ?? nil
  }

  func settle(_ asset: String, _ version: String, at folder: String) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      let insert = try database.statement("INSERT OR REPLACE INTO settled(folder, asset, version) VALUES(?1, ?2, ?3)")
      try insert.bind(1, folder)
      try insert.bind(2, asset)
      try insert.bind(3, version)
      try insert.run()
    }
  }

  func unsettle(_ asset: String) throws(SQLiteError) {
    try database.transaction { () throws(SQLiteError) in
      let delete = try database.statement("DELETE FROM settled WHERE asset = ?1")
      try delete.bind(1, asset)
      try delete.run()
    }
  }

  private func jobs(_ select: Statement) throws(SQLiteError) -> [JournalJob] {
    var jobs: [JournalJob] = []
    while try select.step() { jobs.append(JournalJob(row: select)) }
    return jobs
  }

  // Since version 10. `url` is `JournalJob.key`, and `folder` a URL with the digest of an account in the same way.
  static let schema = """
    CREATE TABLE IF NOT EXISTS job(
      url TEXT PRIMARY KEY, source TEXT NOT NULL, done TEXT, version TEXT, state INTEGER NOT NULL,
      attempts INTEGER NOT NULL, error TEXT, updated INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS open_job ON job(state) WHERE state <> 0;
    CREATE TABLE IF NOT EXISTS settled(
      folder TEXT NOT NULL, asset TEXT NOT NULL, version TEXT NOT NULL, PRIMARY KEY(folder, asset)
    ) WITHOUT ROWID;
    """
}

extension JournalJob {
  fileprivate init(row: Statement) {
    let (url, account) = JournalIntent.parts(ofKey: row.text(0) ?? "")
    self.init(
      url, account: account, source: row.text(1) ?? "", done: row.text(2), version: row.text(3),
      // A state of a later version means that nothing is to be done here.
      state: State(rawValue: row.int(4)) ?? .refused, attempts: Int(clamping: row.int(5)), error: row.text(6),
      updated: row.int(7))
  }
}
