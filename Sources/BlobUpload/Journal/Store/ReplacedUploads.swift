import BlobSQLite

/// Several sources may be sent to one place, one after the other. The place then holds the last one, so the others are
/// no longer done.
///
/// A server may keep each upload separately under its own URL, which the journal cannot know. Therefore an entry with
/// such a URL is marked as superseded, and the next push asks the server. An earlier version of this program treats
/// such an entry as an upload that the next push sends again, and that a resume skips. All other entries are removed.
///
/// The keys of all uploads to one place begin with the same URL: see `JournalIntent.key`. A form has a place only if it
/// asks the server to replace files: otherwise the receiver may keep two files of one name.
final class ReplacedUploads {
  private let uploads: UploadTable
  private let database: Database
  /// The targets of this journal's new entries.
  var targets = ClaimedTargets()

  init(_ uploads: UploadTable) { (self.uploads, database) = (uploads, uploads.database) }

  /// Selects entries that are done and have the same URL in their key as one of the entries `?1...?2`. Entries for the
  /// same version of the same source are excluded, and so are twins: their bytes are still at that place.
  ///
  /// The query names the index because SQLite would otherwise build a temporary index of the whole table in each run.
  static let doneAtURLs: StaticString = """
    SELECT other.id, other.target, other.destination, new.target, new.destination
    FROM upload AS new CROSS JOIN upload AS other INDEXED BY sqlite_autoindex_upload_1
    ON other.target >= substr(new.target, 1, instr(new.target || '#', '#') - 1)
    AND other.target < substr(new.target, 1, instr(new.target || '#', '#') - 1) || '$'
    WHERE new.id BETWEEN ?1 AND ?2 AND other.state = 2 AND other.id NOT BETWEEN ?1 AND ?2
    AND NOT ifnull(other.source = new.source AND other.version = new.version AND other.instance = new.instance, 0)
    AND ifnull((SELECT content FROM twin WHERE upload = other.id) <> (SELECT content FROM twin WHERE upload = new.id), 1)
    """

  /// Selects entries with the URL `?1` in their key that an owner other than `?2` has claimed.
  static let claimedAtURL: StaticString = """
    SELECT id, target, destination, owner FROM upload INDEXED BY sqlite_autoindex_upload_1
    WHERE target >= ?1 AND target < ?1 || '$' AND owner IS NOT NULL AND owner <> ?2
    """

  /// Must be called inside a transaction. The uploads `first...last` were stored at their places, or may replace what
  /// is there: uploads of other sources to these places are no longer done.
  func forgetReplaced(by first: Int64, through last: Int64) throws(SQLiteError) {
    // Two files of one push have the same name only if they have the same bytes.
    let select = try database.statement(Self.doneAtURLs)
    try select.bind(1, first)
    try select.bind(2, last)
    var replaced: [Int64] = []
    do {
      defer { select.reset() }
      while try select.step() {
        let place = (key: select.text(1) ?? "", destination: select.int(2))
        if try isSamePlace(place, (select.text(3) ?? "", select.int(4))) { replaced.append(select.int(0)) }
      }
    }
    for id in replaced { try forgetReplaced(id) }
  }

  /// Must be called inside a transaction. The upload is no longer done, because its place may have other bytes.
  func forgetReplaced(_ id: Int64) throws(SQLiteError) {
    guard let row = try UploadFacts(of: id, in: database) else { return }
    try uploads.twins.forget(id)
    if row.hasOwnURL {
      try supersede(id, row)
    } else if try MetadataTable(database: database).addition(of: id)?.isAgain == true {
      try restart(id, row)
    } else {
      try uploads.remove(id, row)
    }
  }

  /// The source was added again before the other one was sent: it is to be sent after that.
  private func restart(_ id: Int64, _ row: UploadFacts) throws(SQLiteError) {
    if row.isDone { uploads.uncount(row.destination, row.bytes) }
    try uploads.removeTraces(id)
    try database.run(
      "UPDATE upload SET state = 0, acknowledged = 0, location = NULL, error = NULL, sent_length = length WHERE id = ?1",
      with: id)
  }

  /// A row in state `refused` has a location only if it was superseded.
  private func supersede(_ id: Int64, _ row: UploadFacts) throws(SQLiteError) {
    uploads.uncount(row.destination, row.bytes)
    let mark = try database.statement("UPDATE upload SET state = 4, error = ?2 WHERE id = ?1")
    try mark.bind(1, id)
    try mark.bind(2, "another source was later sent under this name")
    try mark.run()
  }

  /// Turns a row that is done into an intent that keeps its location, and claims it: the server is asked whether it has the
  /// upload. What is known of its ciphertext stays, since the key of a sealed file is gone.
  func doubt(_ id: Int64, _ row: UploadFacts, _ me: Int64, _ now: Int64) throws(SQLiteError) {
    guard row.isDone else { return }
    uploads.uncount(row.destination, row.bytes)
    let doubt = try database.statement(
      "UPDATE upload SET state = 0, sent_length = length, owner = ?3, error = ?4, updated = ?2 WHERE id = ?1")
    try doubt.bind(1, id)
    try doubt.bind(2, now)
    try doubt.bind(3, me)
    try doubt.bind(4, "the server may have said that another file is stored")
    try doubt.run()
  }

  /// Marks a superseded row, or one that was doubted, as done again: the server still has its upload.
  func reinstate(_ id: Int64, _ row: UploadFacts, _ me: Int64, _ now: Int64) throws(SQLiteError) {
    guard row.isSuperseded || row.owner == me else { return }
    let done = try database.statement(
      "UPDATE upload SET state = 2, owner = NULL, error = NULL, updated = ?2 WHERE id = ?1 AND state IN (0, 4)")
    try done.bind(1, id)
    try done.bind(2, now)
    try done.run()
    if database.changes == 1 { uploads.count(row.destination, row.bytes) }
  }

  /// Must be called inside a transaction, after claims for a destination. Uploads that may replace a file may do so
  /// from now on: all of them if the destination overwrites; with `replacesGrown`, those whose sources have grown since
  /// they were sent.
  func forgetReplaced(
    by claims: some Sequence<(JournalClaim, JournalIntent)>, at destination: Int64, replacesGrown: Bool
  ) throws(SQLiteError) {
    let overwrites = try uploads.destinations.destination(destination).overwrite
    guard overwrites || replacesGrown else { return }
    var ids: [Int64] = []
    for (claim, intent) in claims {
      let (id, before): (Int64, JournalEntry?)
      switch claim {
      case .fresh(let new): (id, before) = (new, nil)
      case .replaced(let new, let old): (id, before) = (new, old)
      case .resume(let entry), .unsure(let entry): (id, before) = (entry.id, entry)
      case .done, .busy: continue
      }
      if overwrites || before?.mayHaveGrown(to: intent.length) == true { ids.append(id) }
    }
    for run in Self.runs(of: ids) { try forgetReplaced(by: run.lowerBound, through: run.upperBound) }
  }

  /// Groups the ids into ranges without gaps.
  static func runs(of ids: [Int64]) -> [ClosedRange<Int64>] {
    ids.sorted().reduce(into: []) { runs, id in
      if let last = runs.last, last.upperBound + 1 >= id {
        runs[runs.count - 1] = last.lowerBound...id
      } else {
        runs.append(id...id)
      }
    }
  }

  /// For each intent, the live process that has claimed another upload to the same place; empty if there is no other
  /// process. If two processes sent to one place at the same time, nobody could tell whose bytes are stored in the end.
  func otherSenders(to intents: [JournalIntent], _ destination: Int64, _ me: Int64) throws(SQLiteError)
    -> [ProcessIdentity?]
  {
    var live: [Int64: ProcessIdentity] = [:]
    for id in try uploads.owners.others() { live[id] = try uploads.owners.live(id) }
    if live.isEmpty { return [] }
    var senders: [ProcessIdentity?] = []
    for intent in intents {
      let select = try database.statement(Self.claimedAtURL)
      defer { select.reset() }
      try select.bind(1, intent.target)
      try select.bind(2, me)
      var sender: ProcessIdentity?
      while sender == nil, try select.step() {
        let key = select.text(1) ?? ""
        if key.hasSuffix(JournalEntry.mark(ofLeftover: select.int(0))) { continue }
        if try isSamePlace((key, select.int(2)), (intent.key, destination)) { sender = live[select.int(3)] }
      }
      senders.append(sender)
    }
    return senders
  }

  private typealias Place = (key: String, destination: Int64)

  private func isSamePlace(_ one: Place, _ other: Place) throws(SQLiteError) -> Bool {
    let destinations = try [one, other].map { place throws(SQLiteError) in
      try uploads.destinations.destination(place.destination)
    }
    if destinations.contains(where: { $0.protocolName == FormPost().name }) {
      return one.key == other.key && destinations.contains(where: \.overwrite)
    }
    func url(_ place: Place) -> Substring.UTF8View { place.key.utf8.prefix { $0 != UInt8(ascii: "#") } }
    return url(one).elementsEqual(url(other))
  }

  /// Whether other sources may have been sent to the places of these new entries.
  func mayReplace(_ ids: some Sequence<Int64>) throws(SQLiteError) -> Bool {
    let isShared = targets.mayBeShared(ids)
    if !targets.areAll || isShared { return true }
    if try uploads.owners.latest() != uploads.owners.id { targets.areAll = false }
    return !targets.areAll
  }
}

/// Knows for most new entries, without a database query, that no other source was sent to the same place. A query for
/// each entry would take a fortieth of all work for a small file.
struct ClaimedTargets {
  /// The journal had no entry and no other process when this store registered, and no other process has registered
  /// since.
  var areAll = false
  /// A Bloom filter of the target URLs of this store's entries. Once it is full, it reports every URL as possibly
  /// present.
  private var bits = [UInt64](repeating: 0, count: 8192)
  /// Entries whose URL may equal that of an earlier one.
  private var shared: Set<Int64> = []

  mutating func note(_ url: String, of id: Int64) {
    let hash = UInt(bitPattern: url.hashValue)
    var isKnown = true
    for place in [hash & 0x7FFFF, hash >> 19 & 0x7FFFF] {
      let bit = UInt64(1) << UInt64(place & 63)
      if bits[Int(place >> 6)] & bit == 0 { isKnown = false }
      bits[Int(place >> 6)] |= bit
    }
    if isKnown { shared.insert(id) }
  }

  /// Whether one of these entries may have the same URL as an earlier one of this store. The entries have ended and are
  /// forgotten.
  mutating func mayBeShared(_ ids: some Sequence<Int64>) -> Bool {
    if shared.isEmpty { return false }
    return ids.reduce(false) { (shared.remove($1) != nil) || $0 }
  }
}
