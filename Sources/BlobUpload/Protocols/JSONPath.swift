import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A place in a JSON text: `$.files[0].url`, or the same without the `$.`; names in brackets may be quoted.
public struct JSONPath: Sendable, Hashable, CustomStringConvertible {
  private enum Step: Sendable, Hashable {
    case name(String)
    case index(Int)
  }
  /// As it was written.
  public let description: String
  private let steps: [Step]

  /// nil where `text` is no path, or one with wildcards and filters, which lead to more than one place.
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

  /// What is there, if it is a text, a number or a truth value; nil where there is no such thing, or no JSON, or JSON that
  /// nests deeper than `mostLevels`.
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

  /// Each level takes stack to decode, of which a connection's thread has 512 KiB.
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
    /// As text.
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
