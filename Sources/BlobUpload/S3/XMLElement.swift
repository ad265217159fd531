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
  init?(_ bytes: [UInt8], depth most: Int = 16) {
    guard bytes.count <= Int32.max, let parser = XMLParser(most) else { return nil }
    guard let root = parser.parse(bytes) else { return nil }
    self = root
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
