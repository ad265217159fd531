import BlobHTTP
import BlobSQLite

/// Journals before version 9 contain URLs as the user wrote them, so that one place could have several keys.
struct PlaceMigration {
  private let uploads: UploadTable
  private let replaced: ReplacedUploads
  private let database: Database

  init(_ uploads: UploadTable, _ replaced: ReplacedUploads) {
    (self.uploads, self.replaced, database) = (uploads, replaced, uploads.database)
  }

  /// Must be called inside a transaction. Gives every entry the key of its place.
  ///
  /// If two entries of one source then have the same key, the older one is given up. If several sources were sent to one
  /// place, the place has the bytes of the last one, so the others are no longer done.
  func run() throws(SQLiteError) {
    var places: Set<String> = []
    for (id, text) in try uploads.destinations.texts() {
      // A key begins with the endpoint, and what follows that has always been in normal form.
      guard let old: JournalDestination = JSONColumn.decode(text), old.place != old.endpoint else { continue }
      let new = old.withNormalPath
      if new != old { try uploads.destinations.replace(id, with: new) }
      for (entry, key) in try keys(at: id) {
        var (url, rest) = (key.prefix { $0 != "#" }, key.drop { $0 != "#" })
        if let before = old.recipient, let after = new.recipient, rest.dropFirst().hasPrefix(before) {
          rest = "#\(after)\(rest.dropFirst(before.count + 1))"
        }
        url = Substring(HTTPURL(String(url))?.normalized.text ?? String(url))
        try rename(entry, to: "\(url)\(rest)")
        places.insert(String(url))
      }
    }
    for place in places {
      let entries = try entries(at: place)
      let done = entries.filter { $0.state == 2 }
      if done.count > 1, done[0].updated == done[1].updated {
        // Either of them may be the last.
        for entry in done { try replaced.forgetReplaced(entry.id) }
      } else if let last = done.first {
        try replaced.forgetReplaced(by: last.id, through: last.id)
      }
      // An upload that was killed may have replaced the file before the journal had it as done.
      for entry in entries where [0, 1, 3].contains(entry.state) {
        try replaced.forgetReplaced(by: entry.id, through: entry.id)
      }
    }
    try uploads.settle()
  }

  private func keys(at destination: Int64) throws(SQLiteError) -> [(id: Int64, key: String)] {
    let select = try database.statement("SELECT id, target FROM upload WHERE destination = ?1 ORDER BY updated, id")
    defer { select.reset() }
    try select.bind(1, destination)
    var keys: [(Int64, String)] = []
    while try select.step() { keys.append((select.int(0), select.text(1) ?? "")) }
    return keys
  }

  private func rename(_ id: Int64, to key: String) throws(SQLiteError) {
    let other = try database.statement(
      """
      SELECT other.id, other.updated > new.updated FROM upload AS new JOIN upload AS other
      ON other.target = ?2 AND other.source = new.source WHERE new.id = ?1 AND other.id <> ?1
      """)
    try other.bind(1, id)
    try other.bind(2, key)
    let found = try other.first { (id: $0.int(0), isNewer: $0.int(1) != 0) }
    if let found { try uploads.giveUp(found.isNewer ? id : found.id, key) }
    if found?.isNewer == true { return }
    let rename = try database.statement("UPDATE upload SET target = ?2 WHERE id = ?1")
    try rename.bind(1, id)
    try rename.bind(2, key)
    try rename.run()
  }

  /// The newest entry comes first.
  private func entries(at place: String) throws(SQLiteError) -> [(id: Int64, state: Int64, updated: Int64)] {
    let select = try database.statement(
      """
      SELECT id, state, updated FROM upload INDEXED BY sqlite_autoindex_upload_1
      WHERE target = ?1 OR target >= ?1 || '#' AND target < ?1 || '$' ORDER BY updated DESC, id DESC
      """)
    defer { select.reset() }
    try select.bind(1, place)
    var entries: [(Int64, Int64, Int64)] = []
    while try select.step() { entries.append((select.int(0), select.int(1), select.int(2))) }
    return entries
  }
}

extension JournalDestination {
  /// This destination with the recipient's digest of the normalized path, if the digest is one of the path alone. A digest
  /// that includes other things cannot be computed again, because they are not stored.
  fileprivate var withNormalPath: JournalDestination {
    guard let url = HTTPURL(endpoint), recipient == Recipient.digest(ofPath: url.path) else { return self }
    var new = self
    new.recipient = Recipient.digest(ofPath: url.normalized.path)
    return new
  }
}
