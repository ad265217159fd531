/// Reads the text of a TOML file once from its beginning to its end. TOML 1.0.
///
/// Messages never repeat a value, because a user may have written a secret there by mistake.
struct TOMLReader {
  typealias Position = TOMLDocument.Position
  typealias Value = TOMLDocument.Value

  private var rest: Substring.UnicodeScalarView
  private var position = Position()

  static func read(_ text: String) throws(TOMLError) -> [TOMLDocument.Table] {
    var reader = TOMLReader(rest: text[...].unicodeScalars)
    // A byte order mark.
    if reader.rest.first == "\u{FEFF}" { reader.rest.removeFirst() }
    return try reader.tables()
  }

  private mutating func tables() throws(TOMLError) -> [TOMLDocument.Table] {
    var tables = [TOMLDocument.Table(name: [], position: position, lastLine: 1)]
    var lines: [[String]: Int] = [:]
    while try skipToContent() {
      if rest.first == "[" {
        let start = position
        let name = try tableName()
        if let line = lines.updateValue(start.line, forKey: name) {
          throw TOMLError(start, "the table [\(name.joined(separator: "."))] is on line \(line) already")
        }
        tables.append(.init(name: name, position: start, lastLine: start.line))
      } else {
        let entry = try entry()
        if let other = tables[tables.count - 1].entries.first(where: { $0.key == entry.key }) {
          throw TOMLError(entry.keyPosition, "'\(entry.key)' is on line \(other.keyPosition.line) already")
        }
        tables[tables.count - 1].entries.append(entry)
        tables[tables.count - 1].lastLine = position.line
      }
      try endLine()
    }
    return tables
  }

  /// Reads the header of a table, `[name.name]`, and returns its names. The next character must be the opening bracket.
  private mutating func tableName() throws(TOMLError) -> [String] {
    take()
    if rest.first == "[" { throw TOMLError(position, "an array of tables means nothing here: write one bracket") }
    var name: [String] = []
    repeat {
      skipSpaces()
      name.append(try key())
      skipSpaces()
    } while takeIf(".")
    if !takeIf("]") { throw TOMLError(position, "wanted a ']' after the name of the table") }
    return name
  }

  private mutating func entry() throws(TOMLError) -> TOMLDocument.Entry {
    let start = position
    let key = try key()
    skipSpaces()
    if rest.first == "." {
      throw TOMLError(position, "keys with dots mean nothing here: write a line with the table, as [places.NAME]")
    }
    // A word alone on a line may be a secret, so the message does not repeat it.
    if !takeIf("=") { throw TOMLError(position, "wanted '=' and a value after the name of a setting") }
    skipSpaces()
    let valueStart = position
    return .init(key: key, value: try value(), keyPosition: start, valuePosition: valueStart)
  }

  private mutating func key() throws(TOMLError) -> String {
    if rest.first == "\"" || rest.first == "'" { return try string() }
    var key = ""
    while let scalar = rest.first, Self.isBareKey(scalar) {
      key.unicodeScalars.append(scalar)
      take()
    }
    if key.isEmpty {
      throw TOMLError(position, "wanted a name of letters, digits, - and _, as in 'url = \"http://nas/\"'")
    }
    return key
  }

  static func isBareKey(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", "-", "_": true
    default: false
    }
  }

  private mutating func value() throws(TOMLError) -> Value {
    if rest.first != "[" { return try simpleValue() }
    take()
    var values: [Value] = []
    while true {
      guard try skipToContent() else { throw TOMLError(position, "the array has no ']' at its end") }
      if takeIf("]") { return .array(values) }
      if rest.first == "[" { throw TOMLError(position, "an array in an array means nothing here") }
      values.append(try simpleValue())
      guard try skipToContent() else { throw TOMLError(position, "the array has no ']' at its end") }
      if !takeIf(","), rest.first != "]" { throw TOMLError(position, "wanted ',' or ']' after a value of the array") }
    }
  }

  private mutating func simpleValue() throws(TOMLError) -> Value {
    let start = position
    if rest.first == "\"" || rest.first == "'" { return .string(try string()) }
    if rest.first == "{" {
      throw TOMLError(start, "a table in braces means nothing here: write a line with its name, as [places.NAME]")
    }
    var word = ""
    while let scalar = rest.first, Self.isBareKey(scalar) || "+.:".unicodeScalars.contains(scalar) {
      word.unicodeScalars.append(scalar)
      take()
    }
    switch word {
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    default: break
    }
    if let number = Self.integer(word) { return .integer(number) }
    throw TOMLError(start, "wanted text in quotes, a whole number, true or false; text is written \"so\"")
  }

  /// A decimal number. An underscore may stand between two digits, and no zero before others.
  private static func integer(_ word: String) -> Int64? {
    let digits = word.first == "+" || word.first == "-" ? word.dropFirst() : word[...]
    let groups = digits.split(separator: "_", omittingEmptySubsequences: false)
    guard groups.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else { return nil }
    if digits.first == "0", digits.count > 1 { return nil }
    return Int64(word.replacing("_", with: ""))
  }

  /// Reads a string of one line: `"…"` with escapes, or `'…'` without escapes.
  private mutating func string() throws(TOMLError) -> String {
    let start = position
    guard let quote = rest.first else { return "" }
    if rest.starts(with: [quote, quote, quote]) {
      throw TOMLError(start, "text of several lines means nothing here: write it in one line, in single quotes")
    }
    take()
    var text = ""
    while let scalar = rest.first, scalar != quote {
      if scalar == "\n" || scalar == "\r" { break }
      if scalar == "\\", quote == "\"" {
        text.unicodeScalars.append(try escape())
        continue
      }
      if Self.isControl(scalar) { throw TOMLError(position, "a control character in the text") }
      text.unicodeScalars.append(scalar)
      take()
    }
    if !takeIf(quote) { throw TOMLError(start, "the text has no quote at its end") }
    return text
  }

  private mutating func escape() throws(TOMLError) -> Unicode.Scalar {
    let start = position
    take()
    guard let letter = rest.first else { throw TOMLError(start, "the text has no quote at its end") }
    take()
    switch letter {
    case "b": return "\u{8}"
    case "t": return "\t"
    case "n": return "\n"
    case "f": return "\u{C}"
    case "r": return "\r"
    case "\"", "\\": return letter
    case "u", "U":
      let digits = String(String.UnicodeScalarView(rest.prefix(letter == "u" ? 4 : 8)))
      let isWhole = digits.utf8.count == (letter == "u" ? 4 : 8) && digits.allSatisfy(\.isHexDigit)
      guard isWhole, let number = UInt32(digits, radix: 16), let scalar = Unicode.Scalar(number) else {
        throw TOMLError(start, "wanted a character's number, as \\u00e9")
      }
      for _ in digits.unicodeScalars { take() }
      return scalar
    default:
      throw TOMLError(start, "a backslash is written twice, or the text stands in single quotes, where it means itself")
    }
  }

  /// After a table's name or a value, only a comment may follow on the line.
  private mutating func endLine() throws(TOMLError) {
    skipSpaces()
    if rest.isEmpty || rest.first == "#" || rest.first == "\n" || rest.starts(with: ["\r", "\n"]) { return }
    throw TOMLError(position, "wanted the end of the line: each setting has a line of its own")
  }

  /// Skips spaces, empty lines and comments. Returns false at the end of the text.
  private mutating func skipToContent() throws(TOMLError) -> Bool {
    while let scalar = rest.first {
      switch scalar {
      case " ", "\t", "\n": take()
      case "\r":
        take()
        if rest.first != "\n" { throw TOMLError(position, "a control character between the lines") }
      case "#":
        while let scalar = rest.first, scalar != "\n" {
          if Self.isControl(scalar), !rest.starts(with: ["\r", "\n"]) {
            throw TOMLError(position, "a control character in a comment")
          }
          take()
        }
      default: return true
      }
    }
    return false
  }

  private mutating func skipSpaces() { while rest.first == " " || rest.first == "\t" { take() } }

  private mutating func takeIf(_ scalar: Unicode.Scalar) -> Bool {
    if rest.first != scalar { return false }
    take()
    return true
  }

  private mutating func take() {
    if rest.removeFirst() == "\n" {
      position = Position(line: position.line + 1, column: 1)
    } else {
      position.column += 1
    }
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 && scalar != "\t" || scalar.value == 0x7F
  }
}
