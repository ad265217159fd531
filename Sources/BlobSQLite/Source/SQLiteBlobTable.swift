import Blobs

/// The BLOBs in one column of a table: those of all rows, or of the rows that match a condition.
public struct SQLiteBlobTable: Sendable {
  /// A row whose BLOB is not NULL.
  public struct Row: Sendable {
    /// The row's number, which SQLite calls `rowid`.
    public var number: Int64
    /// The bytes of the value in the name column, whatever its type and encoding; or the row's number.
    public var name: BytePath

    /// Creates a row of given values.
    public init(number: Int64, name: BytePath) {
      self.number = number
      self.name = name
    }
  }

  /// The database file.
  public let file: BytePath
  /// The name of the table.
  public let table: String
  /// The name of the column with the BLOBs.
  public let column: String
  /// The column with the names; nil: the row numbers are used as names.
  public let name: String?
  /// See `SQLiteBlobSource`.
  public let version: String?
  /// SQL, as after `WHERE`; never build it from untrusted text. nil: every row.
  public let condition: String?

  /// Describes a table, without opening the file. Names are those of the schema, not SQL.
  public init(
    _ file: BytePath, table: String, column: String, name: String? = nil, version: String? = nil,
    where condition: String? = nil
  ) {
    self.file = file
    self.table = table
    self.column = column
    self.name = name
    self.version = version
    self.condition = condition
  }

  /// Returns up to `limit` rows with numbers above `number`, in order, without rows whose value is NULL. This call
  /// blocks. Throws `.notFound` if the file, table or column does not exist, `.unsupported` for a view.
  public func rows(
    after number: Int64?, limit: Int, _ cancel: Cancellation = Cancellation()
  ) throws(BlobError) -> [Row] {
    if number == .max { return [] }
    return try rows(from: number.map { $0 + 1 } ?? .min, to: .max, condition, limit: limit, cancel)
  }

  /// Returns the row with this number, whether or not it matches the condition; nil if it does not exist or its value
  /// is NULL. Blocks and throws as `rows` does.
  public func row(_ number: Int64, _ cancel: Cancellation = Cancellation()) throws(BlobError) -> Row? {
    try rows(from: number, to: number, nil, limit: 1, cancel).first
  }

  /// The number of rows that match the condition and whose value is NULL. With `number`, only that row is counted,
  /// whether or not it matches the condition. Blocks, since it scans every row. Throws as `rows` does.
  public func countOfNulls(
    row number: Int64? = nil, _ cancel: Cancellation = Cancellation()
  ) throws(BlobError) -> Int64 {
    try listing(cancel) { connection throws(SQLiteError) in
      let condition = number.map { "rowid = \($0)" } ?? condition ?? "1"
      let select = try connection.prepare(
        "SELECT count(*) FROM \(quoted(table)) WHERE typeof(\(quoted(column))) = 'null' AND (\(condition))")
      return try select.first { $0.int(0) } ?? 0
    }
  }

  private func rows(
    from first: Int64, to last: Int64, _ condition: String?, limit: Int, _ cancel: Cancellation
  ) throws(BlobError) -> [Row] {
    try listing(cancel) { connection throws(SQLiteError) in
      let select = try connection.prepare(
        """
        SELECT rowid, \(name.map(quoted) ?? "rowid") FROM \(quoted(table))
        WHERE rowid BETWEEN ?1 AND ?2 AND typeof(\(quoted(column))) <> 'null' AND (\(condition ?? "1"))
        ORDER BY rowid LIMIT ?3
        """)
      try select.bind(1, first)
      try select.bind(2, last)
      try select.bind(3, Int64(limit))
      var rows: [Row] = []
      while try select.step() {
        let (number, name) = (select.int(0), select.bytes(1, atMost: Self.longestName + 1))
        // Otherwise a caller that repeatedly asks for the rows after the last one could get the same rows for ever.
        guard number >= rows.last.map({ $0.number + 1 }) ?? first, number <= last else {
          throw SQLiteError("list", file, code: 1, "row \(number) comes out of turn")
        }
        rows.append(Row(number: number, name: name.map { BytePath($0) } ?? BytePath("\(number)")))
      }
      return rows
    }
  }

  /// Runs `body` with a new connection, after checking that the table and the column exist.
  private func listing<Result>(
    _ cancel: Cancellation, _ body: (ReadConnection) throws(SQLiteError) -> Result
  ) throws(BlobError) -> Result {
    try cancel.check("list \(file): \(table).\(column)")
    do {
      let connection = try ReadConnection(file, cancel)
      defer { withExtendedLifetime(connection) {} }
      try connection.checkTable(table, column: column)
      if let condition { try connection.checkCondition(condition, of: table) }
      return try body(connection)
    } catch {
      throw BlobError(error, "list \(file): \(table).\(column)")
    }
  }

  /// Maximum size of a name in bytes. A longer name is cut after one more byte, so that callers can detect it.
  public static let longestName = 4096

  /// - `named`: the value that the name column must have; nil, or if there is no such column: any.
  public func source(row: Int64, named: BytePath? = nil) -> SQLiteBlobSource {
    var condition: (column: String, value: BytePath)?
    if let name, let named { condition = (name, named) }
    return SQLiteBlobSource(file, table: table, column: column, row: row, name: condition, version: version)
  }

  /// A source of one BLOB: all rows that match the condition, in the order of the column `order`.
  public func source(chunksOrderedBy order: String) -> SQLiteBlobSource {
    SQLiteBlobSource(
      file, table: table, column: column, chunksWhere: condition ?? "1", orderedBy: order, version: version)
  }

  /// A selection of rows, and whether they are separate BLOBs or chunks of one.
  public enum Selection: Sendable, Hashable {
    /// All rows that match the condition, each a separate BLOB.
    case every
    /// One row, whether or not it matches the condition. `named`: the value that the name column must have; nil: any.
    case row(Int64, named: BytePath? = nil)
    /// All rows that match the condition, as chunks of one BLOB, in the order of a column.
    case chunks(orderedBy: String)
  }
}

extension SQLiteBlobTable {
  /// Parses `sqlite:FILE?table=T&column=C[&name=COLUMN][&version=COLUMN][&where=SQL][&row=NUMBER | &chunks=COLUMN]`. With
  /// `name=` and `row=`, `&named=VALUE` is the name that the row must have.
  /// Values that contain one of `&%#` must be percent-encoded, and each may be given once. Throws `.unsupported` with a
  /// message that says what is wrong.
  public static func parse(_ url: String) throws(BlobError) -> (table: SQLiteBlobTable, selection: Selection) {
    let rest = url.dropFirst("sqlite:".count)
    let mark = rest.firstIndex(of: "?") ?? rest.endIndex
    var values: [String: String] = [:]
    var name: BytePath?
    for pair in rest[mark...].dropFirst().split(separator: "&") {
      let key = pair.prefix { $0 != "=" }
      guard ["table", "column", "name", "version", "where", "row", "named", "chunks"].contains(key),
        key.count < pair.count, let bytes = percentDecoded(pair.dropFirst(key.count + 1))
      else {
        throw BlobError(
          .unsupported, "'\(pair)' in \(url): wanted are table=, column=, name=, version=, where=, row= and chunks=")
      }
      // Names are bytes; everything else is a part of SQL, which is text.
      guard let value = String(validating: bytes, as: UTF8.self) ?? (key == "named" ? "" : nil) else {
        throw BlobError(.unsupported, "'\(pair)' in \(url): this is not UTF-8")
      }
      if key == "named" { name = BytePath(bytes) }
      // All but one would be ignored, and with `where=` rows be sent that one of them excludes.
      if values.updateValue(value, forKey: String(key)) != nil {
        throw BlobError(.unsupported, "\(url): \(key)= is given twice: which of the two?")
      }
    }
    guard let file = percentDecoded(rest[..<mark]), !file.isEmpty, let table = values["table"],
      let column = values["column"]
    else { throw BlobError(.unsupported, "\(url): wanted is sqlite:FILE?table=T&column=C") }
    let selection: Selection
    switch (values["row"], values["chunks"]) {
    case (nil, nil): selection = .every
    case (nil, let order?): selection = .chunks(orderedBy: order)
    case (let number?, nil):
      guard let row = Int64(number) else { throw BlobError(.unsupported, "\(url): the row is no number") }
      selection = .row(row, named: name)
    default: throw BlobError(.unsupported, "\(url): row= and chunks=: which of the two?")
    }
    let found = SQLiteBlobTable(
      BytePath(file), table: table, column: column, name: values["name"], version: values["version"],
      where: values["where"])
    return (found, selection)
  }

  /// The URL of one row of this table. `named`: the value of its name column, which it must keep; nil: any.
  public func url(row: Int64, named: BytePath? = nil) -> String {
    guard let name, let named else { return "\(rowPrefix)\(row)" }
    return "\(rowPrefix)\(row)&name=\(name.percentEncoded)&named=\(percentEncoded(named.bytes))"
  }

  /// The URL of a row with a name, as `url(row:named:)` makes it, without the number of the row. It stays the same when the
  /// database gives the row another number. nil: `url` is not such a URL.
  package static func withoutNumber(_ url: BytePath) -> [UInt8]? {
    let bytes = url.bytes
    guard bytes.starts(with: "sqlite:".utf8), let mark = bytes.firstRange(of: Array("&row=".utf8)) else { return nil }
    let rest = bytes[mark.upperBound...].drop { $0 == UInt8(ascii: "-") || UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard rest.starts(with: "&name=".utf8), rest.firstRange(of: Array("&named=".utf8)) != nil else { return nil }
    return Array(bytes[..<mark.lowerBound] + rest)
  }

  /// The prefix of the URL of every row, to which the row number is appended.
  public var rowPrefix: String { "\(url)&row=" }

  /// The URL of the BLOB of `source(chunksOrderedBy:)`.
  public func url(chunksOrderedBy order: String) -> String {
    let condition = condition.map { "&where=\($0.percentEncoded)" } ?? ""
    return "\(url)\(condition)&chunks=\(order.percentEncoded)"
  }

  private var url: String {
    let version = version.map { "&version=\($0.percentEncoded)" } ?? ""
    let path = percentEncoded(file.absolute().bytes)
    return "sqlite:\(path)?table=\(table.percentEncoded)&column=\(column.percentEncoded)\(version)"
  }
}

extension SourceResolver {
  /// Adds `sqlite:` URLs of one BLOB, in a row or in chunks: see `SQLiteBlobTable.parse`.
  public var withDatabases: SourceResolver {
    adding("sqlite") { (url: String) throws(BlobError) in
      let (table, selection) = try SQLiteBlobTable.parse(url)
      switch selection {
      case .row(let row, let named): return table.source(row: row, named: named)
      case .chunks(let order): return table.source(chunksOrderedBy: order)
      case .every:
        throw BlobError(.unsupported, "\(url): a single source needs &row=NUMBER, or &chunks=COLUMN")
      }
    }
  }
}

extension StringProtocol {
  fileprivate var percentEncoded: String { BlobSQLite.percentEncoded(utf8) }
}

/// The bytes with those percent-encoded that would end a value in such a URL.
private func percentEncoded(_ bytes: some Sequence<UInt8>) -> String {
  bytes.reduce(into: "") { text, byte in
    if "%&?#".utf8.contains(byte) || byte < 0x21 || byte > 0x7E {
      text += "%" + hexDigits([byte], uppercase: true)
    } else {
      text.unicodeScalars.append(UnicodeScalar(byte))
    }
  }
}

/// nil if an escape is invalid.
private func percentDecoded(_ text: some StringProtocol) -> [UInt8]? {
  var bytes: [UInt8] = []
  var rest = Array(text.utf8)[...]
  while let byte = rest.popFirst() {
    guard byte == UInt8(ascii: "%") else {
      bytes.append(byte)
      continue
    }
    let digits = String(decoding: rest.prefix(2), as: UTF8.self)
    guard digits.utf8.count == 2, digits.allSatisfy(\.isHexDigit), let value = UInt8(digits, radix: 16) else {
      return nil
    }
    bytes.append(value)
    rest = rest.dropFirst(2)
  }
  return bytes
}
