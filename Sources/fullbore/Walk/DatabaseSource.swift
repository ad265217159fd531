import BlobHTTP
import BlobSQLite
import BlobUpload
import Blobs

/// The BLOBs of a table that are to be sent: `sqlite:FILE?table=T&column=C…`.
struct DatabaseSource: Sendable {
  let table: SQLiteBlobTable
  /// nil: every row that the condition picks.
  let row: Int64?

  /// nil: this is no database.
  init?(_ argument: BytePath) throws(UsageError) {
    guard Self.isDatabase(argument) else { return nil }
    do {
      (table, row) = try SQLiteBlobTable.parse(argument.description)
    } catch {
      throw UsageError("source '\(shown(argument))': \(error.message)")
    }
  }

  static func isDatabase(_ path: BytePath) -> Bool { path.bytes.starts(with: "sqlite:".utf8) }

  /// As the journal has it.
  init?(kept identity: BytePath) {
    guard let (table, row) = try? SQLiteBlobTable.parse(identity.description), row != nil else { return nil }
    self.table = table
    self.row = row
  }
}

/// The rows of databases, batch by batch.
actor DatabaseWalk {
  private var sources: ArraySlice<DatabaseSource>
  private var last: Int64?
  private let report: any PushReport
  private let counters: PushCounters

  init(_ sources: [DatabaseSource], _ report: any PushReport, _ counters: PushCounters) {
    self.sources = sources[...]
    self.report = report
    self.counters = counters
  }

  /// The next rows, which are of one table; nil at the end. A table that cannot be read is reported.
  func next() async -> (table: SQLiteBlobTable, rows: [SQLiteBlobTable.Row])? {
    while let source = sources.first {
      let (table, last) = (source.table, last)
      let found = await asking.run { Result { () throws(BlobError) in try source.rows(after: last) } }
      switch found {
      case .success(let rows) where !rows.isEmpty:
        self.last = rows.last?.number
        if source.row != nil { sources = sources.dropFirst() }
        return (table, rows)
      case .success: break
      case .failure(let error): fail("\(table.file)", error.message)
      }
      sources = sources.dropFirst()
      self.last = nil
    }
    return nil
  }

  /// Items for rows as they are now, under the names they have; what cannot be read is reported.
  func items(
    _ rows: [SQLiteBlobTable.Row], of table: SQLiteBlobTable, as name: BytePath?, in run: PushRun, overwrites: Bool,
    _ limiter: RateLimiter?
  ) async -> [UploadItem] {
    var items: [UploadItem] = []
    for row in rows where !Task.isCancelled {
      let identity = table.url(row: row.number)
      let arrival = name ?? BytePath(row.name)
      if arrival.isEmpty || arrival.isAbsolute || arrival.hasTrailingSlash || arrival.components.contains("..") {
        fail(identity, "its name '\(shown(arrival))' is none that a file can have")
        continue
      }
      let blob = table.source(row: row.number)
      switch await asking.run({ Result { () throws(BlobError) in try blob.info(Cancellation()) } }) {
      case .success(let info):
        counters.found(length: info.length)
        let source: any BlobSource = limiter.map { ThrottledSource(blob, $0) } ?? blob
        let target = run.destination.target(
          arrival, length: info.length, contentType: ContentType.of(arrival), overwrite: overwrites)
        items.append(UploadItem(source: source, info: info, identity: BytePath(identity), target: target))
      case .failure(let error): fail(identity, error.message)
      }
    }
    return items
  }

  /// Names what would be sent.
  func list(as name: BytePath?) async {
    while let (table, rows) = await next() {
      for row in rows {
        counters.found(length: nil)
        Console.output.write("\(shown(name ?? BytePath(row.name)))  row \(row.number) of \(table.table)\n")
      }
    }
  }

  private func fail(_ source: String, _ message: String) {
    counters.filesFound.add(1, ordering: .relaxed)
    counters.failed(length: 0)
    report.failed(BytePath(source), message)
  }
}

extension DatabaseSource {
  fileprivate func rows(after last: Int64?) throws(BlobError) -> [SQLiteBlobTable.Row] {
    guard let row else { return try table.rows(after: last, limit: PushWalk.batch) }
    if last != nil { return [] }
    // It stands alone, whatever the condition says.
    return try table.rows(after: row - 1, limit: 1).filter { $0.number == row }
  }
}

private let asking = BlockingPool("ask-database", threads: 1, patience: .seconds(5))
