import Blobs

/// An error from SQLite, or from the system on its behalf.
public struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// The failed operation: `open`, `begin`, or the first words of a statement. It never contains a bound value.
  public var operation: String
  /// The database file.
  public var file: BytePath
  /// SQLite's extended result code; its low byte is the primary code.
  public var code: Int32
  /// The message from SQLite or from the system.
  public var message: String

  /// Creates an error with SQLite's result code.
  public init(_ operation: String, _ file: BytePath, code: Int32, _ message: String) {
    self.operation = operation
    self.file = file
    self.code = code
    self.message = message
  }

  /// Whether another connection held its lock longer than the busy timeout. The same call may succeed later.
  public var isBusy: Bool { code & 0xFF == 5 }

  /// SQLITE_CORRUPT or SQLITE_NOTADB: the file's content is not what SQLite has written.
  public var isDamaged: Bool { [11, 26].contains(code & 0xFF) }

  public var description: String { "\(operation): \(file): \(message) (SQLite \(code))" }
}
