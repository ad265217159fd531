/// An element of a small XML document, whole. It comes from strangers: what is not well-formed, is large, nests deeply or
/// defines anything is not read at all. The time to read it grows with its size, and no faster.
struct XMLNode: Sendable {
  struct Name: Sendable, Hashable {
    /// The namespace's URI; empty for none.
    var space: String
    var local: String
  }

  var name: Name
  var attributes: [(name: Name, value: String)] = []
  /// Its own, as it stands there.
  var text = ""
  var children: [XMLNode] = []

  /// In UTF-8, which all known writers use.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= Sidecar.most else { return nil }
    var parser = XMLParser(bytes)
    guard let root = parser.document() else { return nil }
    self = root
  }

  fileprivate init(_ name: Name) { self.name = name }
}

private struct XMLParser {
  private static let deepest = 32
  /// Elements and attributes together.
  private static let most = 50_000
  private let bytes: [UInt8]
  private var place = 0
  private var nodes = 0
  private var spaces: [[String: String]] = [["xml": "http://www.w3.org/XML/1998/namespace"]]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func document() -> XMLNode? {
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { place = 3 }
    guard skipBetween(), let root = element(), skipBetween(), place == bytes.count else { return nil }
    return root
  }

  private func sees(_ text: StaticString) -> Bool {
    let count = text.utf8CodeUnitCount
    guard place + count <= bytes.count else { return false }
    return bytes[place..<place + count].elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: count))
  }

  private mutating func take(_ text: StaticString) -> Bool {
    guard sees(text) else { return false }
    place += text.utf8CodeUnitCount
    return true
  }

  /// Up to and with `end`.
  private mutating func skip(past end: StaticString) -> Bool {
    while place < bytes.count {
      if take(end) { return true }
      place += 1
    }
    return false
  }

  private mutating func skipBlanks() {
    while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
  }

  /// What may stand before and after the root; Apple's property lists name their type, without one of their own.
  private mutating func skipBetween() -> Bool {
    while true {
      skipBlanks()
      if take("<?") {
        guard skip(past: "?>") else { return false }
      } else if take("<!--") {
        guard skip(past: "-->") else { return false }
      } else if take("<!DOCTYPE") {
        while place < bytes.count, bytes[place] != UInt8(ascii: ">") {
          if bytes[place] == UInt8(ascii: "[") { return false }
          place += 1
        }
        guard take(">") else { return false }
      } else {
        return true
      }
    }
  }

  private mutating func name() -> String? {
    let start = place
    while place < bytes.count {
      switch bytes[place] {
      case 0x30...0x3A, 0x41...0x5A, 0x61...0x7A, 0x80...0xFF, 0x2D, 0x2E, 0x5F: place += 1
      default: return place > start ? String(validating: bytes[start..<place], as: UTF8.self) : nil
      }
    }
    return nil
  }

  private func resolve(_ name: String, isAttribute: Bool) -> XMLNode.Name? {
    let parts = name.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count == 1 {
      let space = isAttribute ? nil : spaces.last { $0[""] != nil }?[""]
      return XMLNode.Name(space: space ?? "", local: name)
    }
    guard parts.count == 2, let space = spaces.last(where: { $0[String(parts[0])] != nil })?[String(parts[0])] else {
      return nil
    }
    return XMLNode.Name(space: space, local: String(parts[1]))
  }

  private mutating func element() -> XMLNode? {
    nodes += 1
    guard nodes <= Self.most, spaces.count <= Self.deepest, take("<"), let own = name() else { return nil }
    var attributes: [(String, String)] = []
    var keys: Set<String> = []
    var declared: [String: String] = [:]
    while true {
      let before = place
      skipBlanks()
      if sees(">") || sees("/>") { break }
      guard place > before, let key = name() else { return nil }
      skipBlanks()
      guard take("=") else { return nil }
      skipBlanks()
      nodes += 1
      guard nodes <= Self.most, let value = quoted(), keys.insert(key).inserted else { return nil }
      if key == "xmlns" {
        declared[""] = value
      } else if key.hasPrefix("xmlns:") {
        declared[String(key.dropFirst(6))] = value
      } else {
        attributes.append((key, value))
      }
    }
    spaces.append(declared)
    defer { spaces.removeLast() }
    guard let resolved = resolve(own, isAttribute: false) else { return nil }
    var node = XMLNode(resolved)
    for (key, value) in attributes {
      guard let name = resolve(key, isAttribute: true) else { return nil }
      node.attributes.append((name, value))
    }
    if take("/>") { return node }
    guard take(">"), content(of: &node), name() == own else { return nil }
    skipBlanks()
    return take(">") ? node : nil
  }

  /// Up to and with the `</` of its end.
  private mutating func content(of node: inout XMLNode) -> Bool {
    var text: [UInt8] = []
    while place < bytes.count {
      if take("</") {
        guard let text = String(validating: text, as: UTF8.self) else { return false }
        node.text = text
        return true
      } else if take("<!--") {
        guard skip(past: "-->") else { return false }
      } else if take("<![CDATA[") {
        let start = place
        guard skip(past: "]]>") else { return false }
        text += bytes[start..<place - 3]
      } else if take("<?") {
        guard skip(past: "?>") else { return false }
      } else if sees("<") {
        guard let child = element() else { return false }
        node.children.append(child)
      } else {
        guard character(into: &text) else { return false }
      }
    }
    return false
  }

  private mutating func quoted() -> String? {
    guard place < bytes.count, case let quote = bytes[place], quote == 0x22 || quote == 0x27 else { return nil }
    place += 1
    var text: [UInt8] = []
    while place < bytes.count, bytes[place] != quote {
      guard bytes[place] != UInt8(ascii: "<"), character(into: &text) else { return nil }
    }
    place += 1
    return String(validating: text, as: UTF8.self)
  }

  /// One byte, or what an `&…;` stands for.
  private mutating func character(into text: inout [UInt8]) -> Bool {
    if bytes[place] != UInt8(ascii: "&") {
      text.append(bytes[place])
      place += 1
      return true
    }
    guard let end = bytes[place...].prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return false }
    let name = String(decoding: bytes[(place + 1)..<end], as: UTF8.self)
    place = end + 1
    if let plain = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][name] {
      text += plain.utf8
      return true
    }
    let digits = name.dropFirst(name.hasPrefix("#x") ? 2 : 1)
    guard name.hasPrefix("#"), let code = UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10),
      let scalar = Unicode.Scalar(code)
    else { return false }
    text += String(scalar).utf8
    return true
  }
}
