import Blobs

/// A pattern and a name as fnmatch(3) can compare them: it compares bytes, and `?` is to stand for a character.
///
/// Each Unicode scalar that is not ASCII becomes one byte, and so does each byte that belongs to none. Scalars that the
/// pattern names keep their order, so that ranges like `[à-ü]` hold; those between them need not be told apart.
struct GlobBytes {
  let pattern: BytePath
  let name: BytePath

  /// nil: fnmatch(3) can compare them as they are.
  init?(_ pattern: BytePath, _ name: BytePath) {
    guard pattern.bytes.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }),
      name.bytes.contains(where: { $0 >= 0x80 })
    else { return nil }
    let units = Self.units(pattern.bytes)
    let named = Set(units.filter { $0 >= 0x80 }).sorted()
    // One byte for each of them, and for what lies before, between and behind.
    guard 0x80 + 2 * named.count <= 0xFF else { return nil }
    func byte(_ unit: UInt32) -> UInt8 {
      if unit < 0x80 { return UInt8(unit) }
      let before = named.prefix { $0 < unit }.count
      return UInt8(0x80 + 2 * before + (before < named.count && named[before] == unit ? 1 : 0))
    }
    self.pattern = BytePath(units.map(byte))
    self.name = BytePath(Self.units(name.bytes).map(byte))
  }

  /// The scalars in `bytes`. A byte that is not valid UTF-8 counts as one beyond all scalars.
  private static func units(_ bytes: [UInt8]) -> [UInt32] {
    var units: [UInt32] = []
    var (parser, rest, place) = (Unicode.UTF8.ForwardParser(), bytes.makeIterator(), 0)
    while true {
      switch parser.parseScalar(from: &rest) {
      case .valid(let scalar):
        units.append(Unicode.UTF8.decode(scalar).value)
        place += scalar.count
      case .error(let length):
        units += bytes[place..<place + length].map { 0x110000 + UInt32($0) }
        place += length
      case .emptyInput: return units
      }
    }
  }
}
