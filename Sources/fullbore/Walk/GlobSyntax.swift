import Blobs

/// Finds errors that fnmatch(3) accepts: it treats an unclosed bracket as an ordinary character, and an unknown class
/// matches nothing.
struct GlobSyntax {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// A description of the first error; nil if there is none.
  var problem: String? {
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\\"):
        if index + 1 == bytes.count { return "nothing follows its last '\\'" }
        index += 2
      case UInt8(ascii: "["):
        switch bracket(at: index) {
        case .success(let end): index = end
        case .failure(let problem): return problem.text
        }
      default: index += 1
      }
    }
    return nil
  }

  private struct Problem: Error {
    let text: String
  }

  /// The index after the bracket that begins at `start`.
  private func bracket(at start: Int) -> Result<Int, Problem> {
    var index = start + 1
    if [UInt8(ascii: "!"), UInt8(ascii: "^")].contains(byte(index)) { index += 1 }
    let first = index
    while let next = byte(index) {
      switch next {
      case UInt8(ascii: "]") where index > first: return .success(index + 1)
      case UInt8(ascii: "\\"): index += 2
      case UInt8(ascii: "[") where byte(index + 1) == UInt8(ascii: ":"):
        guard let name = className(at: index + 2) else {
          index += 1
          continue
        }
        if !Self.classes.contains(name) { return .failure(Problem(text: "there is no class '[:\(name):]'")) }
        index += name.utf8.count + 4
      default: index += 1
      }
    }
    return .failure(Problem(text: "its '[' is not closed by a ']'; '\\[' is the character itself"))
  }

  private func byte(_ index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

  /// The letters from `start` up to `:]`; nil if something else is there.
  private func className(at start: Int) -> String? {
    let letters = bytes[start...].prefix { UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 }
    guard byte(letters.endIndex) == UInt8(ascii: ":"), byte(letters.endIndex + 1) == UInt8(ascii: "]") else {
      return nil
    }
    return String(decoding: letters, as: UTF8.self)
  }

  private static let classes: Set<String> = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit",
  ]
}
