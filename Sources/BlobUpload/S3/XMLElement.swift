import CExpat

/// A small XML document, whole: what servers answer with. Names are without their prefixes.
struct XMLElement: Sendable {
  var name: String
  /// Its own text, trimmed; that of the elements within it is theirs.
  var text = ""
  var children: [XMLElement] = []

  /// The first child of that name.
  subscript(name: String) -> XMLElement? { children.first { $0.name == name } }

  func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

  /// A child's text; nil where there is none, or it is empty.
  func text(_ name: String) -> String? {
    guard let text = self[name]?.text, !text.isEmpty else { return nil }
    return text
  }

  /// nil for what is not well-formed, has a document type (and so could define entities), or nests deeper than `most`.
  ///
  /// Names of objects may have control characters, which no XML document can hold. Servers write them all the same: each is
  /// read as U+FFFD. XML 1.0 §2.2.
  init?(_ bytes: [UInt8], depth most: Int = 16) {
    guard bytes.count <= Int32.max, let parser = XMLParser(most) else { return nil }
    if let root = parser.parse(bytes) {
      self = root
    } else if let bytes = bytes.withoutControls, let root = XMLParser(most)?.parse(bytes) {
      self = root
    } else {
      return nil
    }
  }

  fileprivate init(name: String) { self.name = name }
}

/// Owns expat's handle.
private final class XMLParser {
  private let handle: XML_Parser
  private let most: Int
  private var open: [XMLElement] = []
  private var root: XMLElement?

  init?(_ most: Int) {
    guard let handle = XML_ParserCreate(nil) else { return nil }
    self.handle = handle
    self.most = most
  }

  deinit { XML_ParserFree(handle) }

  func parse(_ bytes: [UInt8]) -> XMLElement? {
    XML_SetUserData(handle, Unmanaged.passUnretained(self).toOpaque())
    XML_SetElementHandler(handle, startElement, endElement)
    XML_SetCharacterDataHandler(handle, takeText)
    XML_SetStartDoctypeDeclHandler(handle, startDocumentType)
    let status = bytes.withUnsafeBytes { raw in
      XML_Parse(handle, raw.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(raw.count), 1)
    }
    return status == XML_STATUS_OK ? root : nil
  }

  func start(_ name: String) {
    if open.count == most { return stop() }
    open.append(XMLElement(name: String(name.split(separator: ":").last ?? "")))
  }

  func end() {
    guard var element = open.popLast() else { return stop() }
    element.text = element.text.trimmingBlanks
    if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
  }

  func take(_ text: UnsafeBufferPointer<UInt8>) {
    if open.isEmpty { return }
    open[open.count - 1].text += String(decoding: text, as: UTF8.self)
  }

  func stop() { XML_StopParser(handle, XML_Bool(XML_FALSE)) }

  static func from(_ context: UnsafeMutableRawPointer?) -> XMLParser {
    Unmanaged<XMLParser>.fromOpaque(context!).takeUnretainedValue()
  }
}

// File-level functions: C calls them.

private func startElement(
  _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?,
  _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?
) {
  XMLParser.from(context).start(String(cString: name!))
}

private func endElement(_ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?) {
  XMLParser.from(context).end()
}

private func takeText(_ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<XML_Char>?, _ count: Int32) {
  text!.withMemoryRebound(to: UInt8.self, capacity: Int(count)) { bytes in
    XMLParser.from(context).take(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }
}

private func startDocumentType(
  _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<XML_Char>?, _ system: UnsafePointer<XML_Char>?,
  _ publicName: UnsafePointer<XML_Char>?, _ hasSubset: Int32
) {
  XMLParser.from(context).stop()
}

extension [UInt8] {
  /// With U+FFFD in place of control characters that XML does not allow, and of references to them; nil: there are none.
  fileprivate var withoutControls: [UInt8]? {
    let replacement: [UInt8] = [0xEF, 0xBF, 0xBD]
    var result: [UInt8] = []
    var hasChanged = false
    var rest = self[...]
    while let byte = rest.first {
      var length = 1
      var isControl = Self.isForbidden(byte)
      if byte == UInt8(ascii: "&"), let reference = Self.reference(at: rest) {
        (length, isControl) = (reference.length, Self.isForbidden(reference.value))
      }
      if isControl { result += replacement } else { result += rest.prefix(length) }
      hasChanged = hasChanged || isControl
      rest = rest.dropFirst(length)
    }
    return hasChanged ? result : nil
  }

  /// NUL stays an error: it is in no name.
  private static func isForbidden(_ code: UInt8) -> Bool { 1..<0x20 ~= code && ![0x09, 0x0A, 0x0D].contains(code) }

  /// `&#1;` or `&#x1F;` at the beginning of `text`, if its value fits into a byte.
  private static func reference(at text: ArraySlice<UInt8>) -> (length: Int, value: UInt8)? {
    guard let end = text.prefix(12).firstIndex(of: UInt8(ascii: ";")) else { return nil }
    let digits = String(decoding: text[text.startIndex..<end], as: UTF8.self)
    guard digits.hasPrefix("&#") else { return nil }
    let value =
      digits.hasPrefix("&#x") ? UInt8(digits.dropFirst(3), radix: 16) : UInt8(digits.dropFirst(2), radix: 10)
    return value.map { (end - text.startIndex + 1, $0) }
  }
}

extension String {
  fileprivate var trimmingBlanks: String {
    guard let first = firstIndex(where: { !$0.isWhitespace }), let last = lastIndex(where: { !$0.isWhitespace }) else {
      return ""
    }
    return String(self[first...last])
  }

  /// As text between tags.
  var escapedXML: String {
    var text = ""
    for character in self {
      switch character {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      case "\"": text += "&quot;"
      default: text.append(character)
      }
    }
    return text
  }
}
