/// An element of a small XML document, with its content. The input is untrusted: the parser rejects documents that are
/// not well-formed, are large, nest deeply or contain definitions. Its time is linear in the size of the input.
package struct XMLTree: Sendable {
  package struct QualifiedName: Sendable, Hashable {
    /// The namespace's URI; empty for none.
    package var space: String
    package var local: String

    package init(space: String, local: String) { (self.space, self.local) = (space, local) }
  }

  /// What the parser accepts beyond well-formed documents with namespaces.
  package enum Leniency: Sendable {
    case none
    /// Accepts deviations that servers produce: control characters, as in object names, are read as U+FFFD (XML 1.0
    /// §2.2), and a prefix need not be declared. A document type declaration is refused.
    case servers
  }

  package var qualifiedName: QualifiedName
  package var attributes: [(name: QualifiedName, value: String)] = []
  /// The element's own text, unchanged; the text of child elements is stored in them.
  package var text = ""
  package var children: [XMLTree] = []

  /// The local name, without a prefix.
  package var name: String { qualifiedName.local }

  /// The first child with that name.
  package subscript(name: String) -> XMLTree? { children.first { $0.name == name } }

  package func all(_ name: String) -> [XMLTree] { children.filter { $0.name == name } }

  /// A child's text without surrounding white space; nil if there is no such child, or its text is empty.
  package func text(_ name: String) -> String? {
    guard let text = self[name]?.text.trimmingBlanks, !text.isEmpty else { return nil }
    return text
  }

  /// Parses a document in UTF-8, which all known servers use. Returns nil if it is invalid, has more than `most` bytes,
  /// or nests deeper than `depth`.
  package init?(_ bytes: [UInt8], _ leniency: Leniency = .servers, most: Int = 4 << 20, depth: Int = 16) {
    self.init(bytes, leniency, most: most, depth: depth, taking: { _, _ in false })
  }

  /// Parses a document in which some elements have many children. `take` gets each element below the root once it is parsed,
  /// with the names of the elements around it, the root first. It returns whether it is done with the element, which is then
  /// not kept, and does not count.
  package init?(
    _ bytes: [UInt8], _ leniency: Leniency, most: Int, depth: Int, taking take: @escaping (XMLTree, [String]) -> Bool
  ) {
    guard bytes.count <= most else { return nil }
    var parser = XMLParser(bytes, leniency, depth, take)
    guard let root = parser.document() else { return nil }
    self = root
  }

  fileprivate init(_ name: QualifiedName) { qualifiedName = name }
}

extension String {
  fileprivate var trimmingBlanks: String {
    guard let first = firstIndex(where: { !$0.isWhitespace }), let last = lastIndex(where: { !$0.isWhitespace }) else {
      return ""
    }
    return String(self[first...last])
  }

  /// The string with the characters escaped that are special in XML text.
  package var escapedXML: String {
    unicodeScalars.reduce(into: "") { text, scalar in
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      case "\"": text += "&quot;"
      // A parser reads a carriage return as a line feed. XML 1.0 §2.11.
      case "\r": text += "&#13;"
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}

private struct XMLParser {
  /// The maximum number of elements and attributes together.
  private static let most = 50_000
  private let bytes: [UInt8]
  private let leniency: XMLTree.Leniency
  private let deepest: Int
  private var place = 0
  private var nodes = 0
  private let isDone: (XMLTree, [String]) -> Bool
  /// The names of the open elements.
  private var open: [String] = []
  private var spaces: [[String: String]] = [["xml": "http://www.w3.org/XML/1998/namespace"]]

  init(
    _ bytes: [UInt8], _ leniency: XMLTree.Leniency, _ deepest: Int, _ isDone: @escaping (XMLTree, [String]) -> Bool
  ) {
    (self.bytes, self.leniency, self.deepest, self.isDone) = (bytes, leniency, deepest, isDone)
  }

  mutating func document() -> XMLTree? {
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

  /// Skips to the first byte after `end`.
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

  /// Skips what may precede and follow the root element. With leniency `.none`, this includes a document type without
  /// an internal subset, as in Apple's property lists.
  private mutating func skipBetween() -> Bool {
    while true {
      skipBlanks()
      if take("<?") {
        guard skip(past: "?>") else { return false }
      } else if take("<!--") {
        guard skip(past: "-->") else { return false }
      } else if leniency == .none, take("<!DOCTYPE") {
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

  private func resolve(_ name: String, isAttribute: Bool) -> XMLTree.QualifiedName? {
    let parts = name.split(separator: ":", omittingEmptySubsequences: false)
    if parts.count == 1 {
      let space = isAttribute ? nil : spaces.last { $0[""] != nil }?[""]
      return XMLTree.QualifiedName(space: space ?? "", local: name)
    }
    let prefix = String(parts[0])
    guard parts.count == 2, let space = spaces.last(where: { $0[prefix] != nil })?[prefix] ?? undeclared else {
      return nil
    }
    return XMLTree.QualifiedName(space: space, local: String(parts[1]))
  }

  private var undeclared: String? { leniency == .servers ? "" : nil }

  private mutating func element() -> XMLTree? {
    nodes += 1
    guard nodes <= Self.most, spaces.count <= deepest, take("<"), let own = name() else { return nil }
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
    var node = XMLTree(resolved)
    for (key, value) in attributes {
      guard let name = resolve(key, isAttribute: true) else { return nil }
      node.attributes.append((name, value))
    }
    if take("/>") { return node }
    guard take(">"), content(of: &node), name() == own else { return nil }
    skipBlanks()
    return take(">") ? node : nil
  }

  /// Parses up to and including the `</` of the end tag.
  private mutating func content(of node: inout XMLTree) -> Bool {
    var text: [UInt8] = []
    open.append(node.name)
    defer { open.removeLast() }
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
        let before = nodes
        guard let child = element() else { return false }
        if isDone(child, open) { nodes = before } else { node.children.append(child) }
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

  /// Parses one byte, or an `&…;` reference.
  private mutating func character(into text: inout [UInt8]) -> Bool {
    let byte = bytes[place]
    if byte != UInt8(ascii: "&") {
      place += 1
      if !Self.isForbidden(UInt32(byte)) { text.append(byte) } else { return replace(UInt32(byte), in: &text) }
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
    if Self.isForbidden(code) { return replace(code, in: &text) }
    text += String(scalar).utf8
    return true
  }

  /// Whether the code is a control character that XML does not allow. XML 1.0 §2.2.
  private static func isForbidden(_ code: UInt32) -> Bool { code < 0x20 && ![0x09, 0x0A, 0x0D].contains(code) }

  /// NUL remains an error: no name contains it.
  private func replace(_ code: UInt32, in text: inout [UInt8]) -> Bool {
    if leniency == .none || code == 0 { return false }
    text += "\u{FFFD}".utf8
    return true
  }
}
