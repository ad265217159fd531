import BlobSQLite
import Blobs

/// The BLOBs of a table to be sent: `sqlite:FILE?table=T&column=C…`.
struct DatabaseSource: Sendable {
  let table: SQLiteBlobTable
  let selection: SQLiteBlobTable.Selection
  /// All rows together are one file.
  var isChunks: Bool {
    if case .chunks = selection { return true }
    return false
  }

  /// nil if `argument` is not a `sqlite:` URL.
  init?(_ argument: BytePath) throws(UsageError) {
    guard argument.hasScheme("sqlite") else { return nil }
    do {
      // The path of the file is bytes; as text they are percent-encoded.
      let isText = String(validating: argument.bytes, as: UTF8.self) != nil
      let url =
        isText
        ? argument.description
        : String(decoding: argument.bytes.flatMap(Self.encoded), as: UTF8.self)
      (table, selection) = try SQLiteBlobTable.parse(url)
    } catch {
      throw UsageError("source '\(shown(argument))': \(error.message)")
    }
  }
}

extension DatabaseSource {
  private static func encoded(_ byte: UInt8) -> [UInt8] {
    byte < 0x80 ? [byte] : Array("%\(hexDigits([byte], uppercase: true))".utf8)
  }
}

/// Lists the rows of databases in batches.
actor DatabaseWalk: SourceWalk {
  private var sources: ArraySlice<DatabaseSource>
  private var last: Int64?
  private let name: BytePath?
  /// The names of a single row at further destinations; nil uses the table's name column.
  private let otherNames: [BytePath?]
  private let report: any PushReport
  private let counters: PushCounters
  private let emptySources: EmptySources
  /// Whether the row of this name is sent.
  private let chooses: @Sendable (BytePath) -> Bool

  /// `name` is the name of a single row; nil uses the table's name column. `otherNames`: the same at further destinations.
  init(
    _ sources: [DatabaseSource], as name: BytePath?, others otherNames: [BytePath?] = [], _ report: any PushReport,
    _ counters: PushCounters, _ emptySources: EmptySources,
    choosing chooses: @escaping @Sendable (BytePath) -> Bool
  ) {
    self.sources = sources[...]
    self.name = name
    self.otherNames = otherNames
    self.report = report
    self.counters = counters
    self.emptySources = emptySources
    self.chooses = chooses
  }

  /// The next rows of a table that are chosen by their names. Reports tables that cannot be read, rows that do not exist or have no BLOB, and invalid
  /// file names.
  func next() async -> [FoundSource]? {
    while let source = sources.first {
      if case .chunks(let order) = source.selection {
        sources = sources.dropFirst()
        let url = source.table.url(chunksOrderedBy: order)
        // The options ensure that there is a name.
        let name = name ?? ""
        if !chooses(name) { continue }
        return [FoundSource(.url(url), BytePath(url), as: name, others: otherNames.map { $0 ?? "" })]
      }
      let last = last
      let asked = await BlockingPool.shared.runUntilCancelled { cancel in
        Result { () throws(BlobError) in try source.rows(after: last, cancel) }
      }
      switch asked {
      case nil: return nil
      case .success(let rows) where !rows.isEmpty:
        self.last = rows.last?.number
        let found = rows.compactMap { place($0, in: source.table) }
        if !found.isEmpty { return found }
        continue
      case .success: if await !end(source, isEmpty: last == nil) { return nil }
      case .failure(let error) where error.code == .cancelled: return nil
      case .failure(let error): fail("\(source.table.file)", error.message)
      }
      sources = sources.dropFirst()
      self.last = nil
    }
    return nil
  }

  /// After the last row of a table, reports the rows that are not sent. Returns false if the task was cancelled.
  private func end(_ source: DatabaseSource, isEmpty: Bool) async -> Bool {
    let table = source.table
    var number: Int64?
    if case .row(let row, _) = source.selection { number = row }
    // A single row was found, so it has a BLOB.
    if number != nil && !isEmpty { return true }
    let asked = await BlockingPool.shared.runUntilCancelled { [number] cancel in
      Result { () throws(BlobError) in try table.countOfNulls(row: number, cancel) }
    }
    switch asked {
    case nil: return false
    case .failure(let error) where error.code == .cancelled: return false
    case .failure(let error): fail("\(table.file)", error.message)
    case .success(let nulls):
      if let number {
        fail(table.url(row: number), nulls > 0 ? "its value is NULL, and no BLOB" : "there is no such row")
        return true
      }
      if nulls > 0 {
        counters.leftOut(Int(clamping: nulls))
        report.notice(
          "\(source.place): left out \(Quantity.plural(Int(clamping: nulls), "row")) with NULL, and no BLOB")
      }
      if isEmpty { emptySources.note(.table(place: source.place, prefix: Array(table.rowPrefix.utf8))) }
    }
    return true
  }

  private func place(_ row: SQLiteBlobTable.Row, in table: SQLiteBlobTable) -> FoundSource? {
    let url = table.url(row: row.number, named: row.name)
    let arrivals = ([name] + otherNames).map { $0 ?? row.name }
    let hasLongName = row.name.bytes.count > SQLiteBlobTable.longestName
    if !hasLongName, !chooses(row.name) { return nil }
    for arrival in arrivals {
      if !arrival.isNameBelow {
        fail(url, "its name '\(shown(arrival))' is none that a file can have")
        return nil
      }
      if arrival.bytes.count > SQLiteBlobTable.longestName {
        fail(url, "its name has more than \(SQLiteBlobTable.longestName) bytes")
        return nil
      }
    }
    return FoundSource(.url(url), BytePath(url), as: arrivals[0], others: Array(arrivals.dropFirst()))
  }

  private func fail(_ source: String, _ message: String) {
    counters.notFound()
    report.failed(BytePath(source), message)
  }
}

extension DatabaseSource {
  /// The table, column and condition, for messages.
  fileprivate var place: String {
    "\(table.file): \(table.table).\(table.column)\(table.condition.map { " where \($0)" } ?? "")"
  }

  fileprivate func rows(after last: Int64?, _ cancel: Cancellation) throws(BlobError) -> [SQLiteBlobTable.Row] {
    // Without a version column, each row is read as a whole before it is sent, so the batch is small.
    guard case .row(let row, _) = selection else {
      return try table.rows(after: last, limit: table.version == nil ? 4 : PushWalk.batch, cancel)
    }
    if last != nil { return [] }
    return try table.row(row, cancel).map { [$0] } ?? []
  }
}
