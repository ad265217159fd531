import Blobs

/// A BLOB in a database, read in place: no copy, constant memory, any offset.
///
/// It may lie in one row, or in the rows of its chunks, since one BLOB has at most 1,000,000,000 bytes. Each reader has a
/// connection and a snapshot of its own: it reads one version from end to end, whatever others write meanwhile.
///
/// While a reader is open, a database in WAL mode lets writers go on and keeps their log until the reader is gone; in any
/// other mode writers have to wait. The file is opened for reading only.
public struct SQLiteBlobSource: BlobSource {
  public let file: BytePath
  public var access: BlobAccess { .random }
  let place: BlobPlace

  /// The BLOB in one row of an ordinary table (not `WITHOUT ROWID`).
  ///
  /// - `version`: a column that is set to another value with every change of the BLOB. nil: the bytes themselves tell
  ///   versions apart, so they are read once more whenever a reader is opened.
  public init(_ file: BytePath, table: String, column: String, row: Int64, version: String? = nil) {
    self.file = file
    place = BlobPlace(
      table: table, column: column, version: version, condition: "rowid = \(row)", order: "rowid", isSingle: true)
  }

  /// A BLOB in chunks: the rows of which `condition` holds, in the order of the column `order`.
  ///
  /// - `condition`: SQL, as after `WHERE`: never put together from words of others.
  public init(
    _ file: BytePath, table: String, column: String, chunksWhere condition: String, orderedBy order: String,
    version: String? = nil
  ) {
    self.file = file
    place = BlobPlace(
      table: table, column: column, version: version, condition: condition, order: quoted(order), isSingle: false)
  }

  /// Without a version column this reads the whole BLOB.
  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try open(at: 0, cancel).info }

  /// Throws `.notFound` when there is no such file, table, column or row; `.unsupported` for what is no BLOB or no
  /// ordinary table; `.invalidated` when writers hold their lock for 5 s.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open \(name)")
    do {
      return try SQLiteBlobReader(self, at: offset, cancel)
    } catch let error as SQLiteError {
      throw BlobError(error, "open \(name)")
    } catch {
      // Nothing else is thrown there.
      throw error as! BlobError
    }
  }

  /// For messages.
  var name: String { "\(file): \(place)" }
}

/// Where in a database a BLOB lies.
struct BlobPlace: Sendable, CustomStringConvertible {
  var table: String
  var column: String
  var version: String?
  /// SQL: which rows, and in which order.
  var condition: String
  var order: String
  /// One row, and no other number of them.
  var isSingle: Bool

  var description: String { "\(table).\(column) where \(condition)" }
}

/// A name as SQL takes it, whatever is in it.
func quoted(_ name: String) -> String { "\"" + name.replacing("\"", with: "\"\"") + "\"" }

extension BlobError {
  /// What SQLite says, in the terms of sources.
  init(_ error: SQLiteError, _ operation: String) {
    let code: BlobError.Code =
      switch error.code & 0xFF {
      case 4, 5, 6: .invalidated  // ABORT, BUSY, LOCKED: the same bytes may be had again
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
