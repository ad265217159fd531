import Blobs

/// The BLOBs in one column of a table: those of all rows, or of the rows that a condition picks.
public struct SQLiteBlobTable: Sendable {
  public struct Row: Sendable {
    public var number: Int64
    /// What the name column says, or the row's number.
    public var name: String

    public init(number: Int64, name: String) {
      self.number = number
      self.name = name
    }
  }

  public let file: BytePath
  public let table: String
  public let column: String
  /// The column with the names; nil: the rows' numbers are their names.
  public let name: String?
  /// See `SQLiteBlobSource`.
  public let version: String?
  /// SQL, as after `WHERE`: never put together from words of others. nil: every row.
  public let condition: String?

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

  /// Up to `limit` rows with a number above `number`, in order; rows without a BLOB (NULL) are left out. Blocks.
  /// Throws `.notFound` when there is no such file, table or column, `.unsupported` for a view.
  public func rows(
    after number: Int64?, limit: Int, _ cancel: Cancellation = Cancellation()
  ) throws(BlobError) -> [Row] {
    if number == .max { return [] }
    return try rows(from: number.map { $0 + 1 } ?? .min, to: .max, condition, limit: limit, cancel)
  }

  /// The row of this number, whatever the condition says; nil where there is none, or it has no BLOB. As `rows`.
  public func row(_ number: Int64, _ cancel: Cancellation = Cancellation()) throws(BlobError) -> Row? {
    try rows(from: number, to: number, nil, limit: 1, cancel).first
  }

  /// How many rows have no BLOB (NULL), of those that the condition picks; with `number`, of the row of this number alone,
  /// whatever the condition says. Looks at every row: blocks. Throws as `rows`.
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
        let (number, name) = (select.int(0), select.text(1, atMost: Self.longestName + 1))
        // Whoever asks for the rows after the last one must not get the same ones for ever.
        guard number >= rows.last.map({ $0.number + 1 }) ?? first, number <= last else {
          throw SQLiteError("list", file, code: 1, "row \(number) comes out of turn")
        }
        rows.append(Row(number: number, name: name ?? "\(number)"))
      }
      return rows
    }
  }

  /// Runs `body` with a connection of its own, once the table and the column were found to be there.
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

  /// Bytes of a name. What is longer is cut after the next one, so that it can be seen.
  public static let longestName = 4096

  public func source(row: Int64) -> SQLiteBlobSource {
    SQLiteBlobSource(file, table: table, column: column, row: row, version: version)
  }

  /// One BLOB of all rows that the condition picks, in the order of the column `order`.
  public func source(chunksOrderedBy order: String) -> SQLiteBlobSource {
    SQLiteBlobSource(
      file, table: table, column: column, chunksWhere: condition ?? "1", orderedBy: order, version: version)
  }

  /// Which rows are meant, and what they are.
  public enum Selection: Sendable, Hashable {
    /// All that the condition picks, each of them a BLOB.
    case every
    /// One, whatever the condition says.
    case row(Int64)
    /// All that the condition picks, together one BLOB, in the order of a column.
    case chunks(orderedBy: String)
  }
}

extension SQLiteBlobTable {
  /// `sqlite:FILE?table=T&column=C[&name=COLUMN][&version=COLUMN][&where=SQL][&row=NUMBER | &chunks=COLUMN]`, each value
  /// percent-encoded where it holds one of `&%#`. Throws `.unsupported` that says what is wrong.
  public static func parse(_ url: String) throws(BlobError) -> (table: SQLiteBlobTable, selection: Selection) {
    let rest = url.dropFirst("sqlite:".count)
    let mark = rest.firstIndex(of: "?") ?? rest.endIndex
    var values: [String: String] = [:]
    for pair in rest[mark...].dropFirst().split(separator: "&") {
      let key = pair.prefix { $0 != "=" }
      guard ["table", "column", "name", "version", "where", "row", "chunks"].contains(key), key.count < pair.count,
        let value = String(percentEncoded: pair.dropFirst(key.count + 1))
      else {
        throw BlobError(
          .unsupported, "'\(pair)' in \(url): wanted are table=, column=, name=, version=, where=, row= and chunks=")
      }
      values[String(key)] = value
    }
    guard let file = String(percentEncoded: rest[..<mark]), !file.isEmpty, let table = values["table"],
      let column = values["column"]
    else { throw BlobError(.unsupported, "\(url): wanted is sqlite:FILE?table=T&column=C") }
    let selection: Selection
    switch (values["row"], values["chunks"]) {
    case (nil, nil): selection = .every
    case (nil, let order?): selection = .chunks(orderedBy: order)
    case (let number?, nil):
      guard let row = Int64(number) else { throw BlobError(.unsupported, "\(url): the row is no number") }
      selection = .row(row)
    default: throw BlobError(.unsupported, "\(url): row= and chunks=: which of the two?")
    }
    let found = SQLiteBlobTable(
      BytePath(file), table: table, column: column, name: values["name"], version: values["version"],
      where: values["where"])
    return (found, selection)
  }

  /// The URL that names one row of this table.
  public func url(row: Int64) -> String { "\(rowPrefix)\(row)" }

  /// With this begins the URL of every row, whatever its number is.
  public var rowPrefix: String { "\(url)&row=" }

  /// The URL that names the one BLOB of `source(chunksOrderedBy:)`.
  public func url(chunksOrderedBy order: String) -> String {
    let condition = condition.map { "&where=\($0.percentEncoded)" } ?? ""
    return "\(url)\(condition)&chunks=\(order.percentEncoded)"
  }

  private var url: String {
    let version = version.map { "&version=\($0.percentEncoded)" } ?? ""
    let path = file.absolute().description.percentEncoded
    return "sqlite:\(path)?table=\(table.percentEncoded)&column=\(column.percentEncoded)\(version)"
  }
}

extension SourceResolver {
  /// `sqlite:` URLs of one BLOB, in a row or in chunks: see `SQLiteBlobTable.parse`.
  public var withDatabases: SourceResolver {
    adding("sqlite") { (url: String) throws(BlobError) in
      let (table, selection) = try SQLiteBlobTable.parse(url)
      switch selection {
      case .row(let row): return table.source(row: row)
      case .chunks(let order): return table.source(chunksOrderedBy: order)
      case .every:
        throw BlobError(.unsupported, "\(url): a single source needs &row=NUMBER, or &chunks=COLUMN")
      }
    }
  }
}

extension StringProtocol {
  /// With what would end a value in a URL of ours percent-encoded.
  fileprivate var percentEncoded: String {
    utf8.reduce(into: "") { text, byte in
      if "%&?#".utf8.contains(byte) || byte < 0x21 || byte > 0x7E {
        text += "%" + hexDigits([byte], uppercase: true)
      } else {
        text.unicodeScalars.append(UnicodeScalar(byte))
      }
    }
  }
}

extension String {
  /// nil when an escape is none, or the bytes are no UTF-8.
  fileprivate init?(percentEncoded text: some StringProtocol) {
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
    self.init(validating: bytes, as: UTF8.self)
  }
}
