import Blobs

/// A pattern and a name, encoded for fnmatch(3), which compares bytes although `?` must match a character.
///
/// Each non-ASCII Unicode scalar is mapped to one byte, and so is each invalid byte. Scalars in the pattern keep their
/// order, so that ranges like `[à-ü]` work. Scalars between them need not be distinguished.
struct GlobBytes {
  let pattern: BytePath
  let name: BytePath

  /// nil if fnmatch(3) can compare pattern and name without encoding.
  init?(_ pattern: BytePath, _ name: BytePath) {
    guard pattern.bytes.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "[") }),
      name.bytes.contains(where: { $0 >= 0x80 })
    else { return nil }
    let units = Self.units(pattern.bytes)
    let named = Set(units.filter { $0 >= 0x80 }).sorted()
    // One byte for each scalar in the pattern, and one for each gap before, between and after them.
    guard 0x80 + 2 * named.count <= 0xFF else { return nil }
    func byte(_ unit: UInt32) -> UInt8 {
      if unit < 0x80 { return UInt8(unit) }
      let before = named.prefix { $0 < unit }.count
      return UInt8(0x80 + 2 * before + (before < named.count && named[before] == unit ? 1 : 0))
    }
    self.pattern = BytePath(units.map(byte))
    self.name = BytePath(Self.units(name.bytes).map(byte))
  }

  /// The scalars in `bytes`. An invalid byte is mapped to a value above all scalars.
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
