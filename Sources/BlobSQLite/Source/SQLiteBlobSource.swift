import Blobs

/// A BLOB in a database, read in place, without a copy, with constant memory, from any offset.
///
/// It may be in one row or divided into chunks in several rows, because one SQLite BLOB has at most 1,000,000,000
/// bytes. Each reader has a connection and a snapshot of its own, so it reads one version from start to end, whatever
/// others write meanwhile.
///
/// While a reader is open, writers of a database in WAL mode can continue, and their log is kept until the reader is
/// released. In any other mode writers have to wait. The file is opened read-only.
public struct SQLiteBlobSource: BlobSource {
  /// The database file.
  public let file: BytePath
  public var access: BlobAccess { .random }
  let place: BlobLocation

  /// A BLOB in one row of an ordinary table (not `WITHOUT ROWID`).
  ///
  /// - `version`: a column whose value changes with every change of the BLOB. nil: the version is computed from the
  ///   bytes, so they are read an additional time whenever a reader is opened.
  /// - `name`: a column, and the value that it must have in this row. SQLite may give the number of a deleted row to a
  ///   new one; with another name, that is not this BLOB. nil: only the number counts.
  public init(
    _ file: BytePath, table: String, column: String, row: Int64, name: (column: String, value: BytePath)? = nil,
    version: String? = nil
  ) {
    self.file = file
    place = BlobLocation(
      table: table, column: column, version: version, condition: "rowid = \(row)", name: name, order: "rowid",
      isSingle: true)
  }

  /// A BLOB in chunks: the rows that match `condition`, in the order of the column `order`.
  ///
  /// - `condition`: SQL, as after `WHERE`. Never build it from untrusted text.
  public init(
    _ file: BytePath, table: String, column: String, chunksWhere condition: String, orderedBy order: String,
    version: String? = nil
  ) {
    self.file = file
    place = BlobLocation(
      table: table, column: column, version: version, condition: condition, order: quoted(order), isSingle: false)
  }

  /// Without a version column, this reads the whole BLOB.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try open(at: 0, cancel).info }

  /// Throws `.notFound` if the file, table, column or row does not exist; `.unsupported` if the value is not a BLOB or
  /// the table is not an ordinary table; `.invalidated` if a writer holds its lock for 5 s.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open \(name)")
    do {
      return try SQLiteBlobReader(self, at: offset, cancel)
    } catch let error as SQLiteError {
      throw BlobError(error, "open \(name)")
    } catch {
      // The initializer throws no other errors.
      throw error as! BlobError
    }
  }

  /// The name of the source in error messages.
  var name: String { "\(file): \(place)" }
}

/// The location of a BLOB in a database.
struct BlobLocation: Sendable, CustomStringConvertible {
  var table: String
  var column: String
  var version: String?
  /// SQL for the selection of rows and for their order.
  var condition: String
  /// A column, and the value that it must have as well.
  var name: (column: String, value: BytePath)?
  var order: String
  /// The selection must contain exactly one row.
  var isSingle: Bool

  var description: String { "\(table).\(column) where \(condition)" }

  /// SQL for all conditions; its parameters are the value of `name` as a text and as a BLOB. A row without a name has its
  /// number as its name.
  var wholeCondition: String {
    guard let column = name.map({ quoted($0.column) }) else { return condition }
    return """
      (\(condition)) AND CASE typeof(\(column)) WHEN 'blob' THEN \(column) = ?2
      ELSE coalesce(CAST(\(column) AS TEXT), rowid || '') = ?1 END
      """
  }
}

/// Quotes any name as an SQL identifier. A combining character may follow a quotation mark, so that the two are one
/// `Character`.
func quoted(_ name: String) -> String {
  let doubled = name.unicodeScalars.flatMap { $0 == "\"" ? [$0, $0] : [$0] }
  return "\"" + String(String.UnicodeScalarView(doubled)) + "\""
}

extension BlobError {
  /// Converts an error from SQLite.
  init(_ error: SQLiteError, _ operation: String) {
    let code: BlobError.Code =
      switch error.code & 0xFF {
      case 4, 5, 6: .invalidated  // ABORT, BUSY, LOCKED: opening again may give the same bytes
      case 9: .cancelled  // INTERRUPT
      case 14: .notFound  // CANTOPEN
      // WITHOUT ROWID
      case 1 where error.message.hasSuffix(": rowid"): .unsupported
      case 1 where error.message.hasPrefix("no such"): .notFound
      case 1: .unsupported
      case 3, 23: .permission
      case 18: .unsupported  // TOOBIG
      default: .io
      }
    self.init(code, "\(operation): \(error.message) (SQLite \(error.code))", cause: error)
  }
}
