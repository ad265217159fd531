import Blobs

/// What SQLite, or the system on its behalf, refused to do.
public struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// What was tried: `open`, `begin`, the first words of a statement. Never a bound value.
  public var operation: String
  public var file: BytePath
  /// SQLite's extended result code; its low byte is the primary one.
  public var code: Int32
  /// SQLite's own words, or the system's.
  public var message: String

  public init(_ operation: String, _ file: BytePath, code: Int32, _ message: String) {
    self.operation = operation
    self.file = file
    self.code = code
    self.message = message
  }

  /// Another connection held its lock for longer than the busy timeout. The same call may succeed later.
  public var isBusy: Bool { code & 0xFF == 5 }

  /// SQLITE_CORRUPT or SQLITE_NOTADB: what is in the file is not what SQLite has written.
  public var isDamaged: Bool { [11, 26].contains(code & 0xFF) }

  public var description: String { "\(operation): \(file): \(message) (SQLite \(code))" }
}
