/// The tables and values of a TOML file, each with its place in the text.
///
/// This is the part of TOML 1.0 that `config.toml` uses: comments, `[table.name]`, `key = value`, and as values text in
/// one line, whole numbers, true, false, and arrays of these.
struct TOMLDocument: Sendable, Hashable {
  /// Both count from 1; columns count characters.
  struct Position: Sendable, Hashable {
    var line = 1
    var column = 1
  }

  enum Value: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case boolean(Bool)
    case array([Value])
  }

  struct Entry: Sendable, Hashable {
    let key: String
    let value: Value
    let keyPosition: Position
    let valuePosition: Position
  }

  struct Table: Sendable, Hashable {
    /// The parts of the name between the dots; empty for what stands before the first table.
    let name: [String]
    let position: Position
    var entries: [Entry] = []
    /// The last line that belongs to the table: its own, or that on which its last value ends.
    var lastLine: Int
  }

  /// In the order of the text. The first one has no name.
  let tables: [Table]

  init(_ text: String) throws(TOMLError) { tables = try TOMLReader.read(text) }
}

/// A mistake in a TOML file, and its position.
struct TOMLError: Error, Sendable, Hashable {
  let position: TOMLDocument.Position
  let message: String

  init(_ position: TOMLDocument.Position, _ message: String) { (self.position, self.message) = (position, message) }
}
