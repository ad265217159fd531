import BlobSQLite
import Blobs

/// The journal could not be opened, read or written. The call that threw has stored nothing.
public struct JournalError: Error, Sendable, CustomStringConvertible {
  /// The operation, the file and the reason.
  public var message: String
  /// The error of SQLite or of the system; nil if there is none.
  public var cause: (any Error)?
  /// The file is not a valid database, so later calls fail as well. See `Journal.opened`.
  public var isDamaged: Bool { (cause as? SQLiteError)?.isDamaged ?? false }

  /// Creates an error, for journals and tests.
  public init(_ message: String, cause: (any Error)? = nil) {
    self.message = message
    self.cause = cause
  }

  init(_ error: SQLiteError) {
    let holder =
      error.isBusy
      ? "; another program keeps it locked, such as a fullbore that was stopped with Ctrl-Z, a backup or a database tool: "
        + "'fuser \(error.file)' names it" : ""
    self.init("the journal: \(error)\(holder)", cause: error)
  }

  public var description: String { message }
}
