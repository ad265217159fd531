import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A path to a value in a JSON text: `$.files[0].url`, also without the `$.`; names in brackets may be quoted.
public struct JSONPath: Sendable, Hashable, CustomStringConvertible {
  private enum Step: Sendable, Hashable {
    case name(String)
    case index(Int)
  }
  /// The path as the user wrote it.
  public let description: String
  private let steps: [Step]

  /// nil if `text` is not a path, or uses wildcards or filters, which can match several values.
  public init?(_ text: String) {
    description = text
    var steps: [Step] = []
    var rest = text[...]
    if rest.first == "$" { rest.removeFirst() } else if rest.first != "[" { rest = "." + rest }
    while let first = rest.popFirst() {
      switch first {
      case ".":
        let name = rest.prefix { $0 != "." && $0 != "[" }
        if name.isEmpty || name.contains(where: { "*'\"]".contains($0) }) { return nil }
        steps.append(.name(String(name)))
        rest = rest.dropFirst(name.count)
      case "[":
        guard let step = Self.bracketed(&rest) else { return nil }
        steps.append(step)
      default: return nil
      }
    }
    self.steps = steps
  }

  private static func bracketed(_ rest: inout Substring) -> Step? {
    if let quote = rest.first, quote == "'" || quote == "\"" {
      rest.removeFirst()
      let name = rest.prefix { $0 != quote }
      rest = rest.dropFirst(name.count)
      guard rest.hasPrefix("\(quote)]") else { return nil }
      rest = rest.dropFirst(2)
      return .name(String(name))
    }
    let digits = rest.prefix { $0 != "]" }
    guard let index = Int64(digits: digits).map({ Int(clamping: $0) }), rest.count > digits.count else { return nil }
    rest = rest.dropFirst(digits.count + 1)
    return .index(index)
  }

  /// The value at the path if it is a string, a number or a boolean. nil: there is no such value, or the text is not
  /// JSON or nests deeper than `mostLevels`.
  package func value(in json: [UInt8]) -> String? {
    guard Self.isShallow(json), var value = try? JSONDecoder().decode(Value.self, from: Data(json)) else { return nil }
    for step in steps {
      switch (step, value) {
      case (.name(let name), .object(let members)):
        guard let next = members[name] else { return nil }
        value = next
      case (.index(let index), .array(let elements)):
        guard index < elements.count else { return nil }
        value = elements[index]
      default: return nil
      }
    }
    if case .scalar(let text) = value { return text }
    return nil
  }

  /// Decoding each level needs stack, and a connection's thread has only 512 KiB.
  private static let mostLevels = 64

  private static func isShallow(_ json: [UInt8]) -> Bool {
    var (level, isText, isEscaped) = (0, false, false)
    for byte in json {
      if isText {
        if isEscaped {
          isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
          isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
          isText = false
        }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isText = true
      case UInt8(ascii: "["), UInt8(ascii: "{"): level += 1
      case UInt8(ascii: "]"), UInt8(ascii: "}"): level -= 1
      default: break
      }
      if level > mostLevels { return false }
    }
    return true
  }

  private indirect enum Value: Decodable {
    case object([String: Value])
    case array([Value])
    /// The value as text.
    case scalar(String)
    case null

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let text = try? container.decode(String.self) {
        self = .scalar(text)
      } else if let truth = try? container.decode(Bool.self) {
        self = .scalar(String(truth))
      } else if let whole = try? container.decode(Int64.self) {
        self = .scalar(String(whole))
      } else if let number = try? container.decode(Double.self) {
        self = .scalar(String(number))
      } else if let elements = try? container.decode([Value].self) {
        self = .array(elements)
      } else {
        self = .object(try container.decode([String: Value].self))
      }
    }
  }
}
