import Blobs

/// The properties of an XMP packet. XMP Specification Part 1 §7.
struct XMPPacket {
  enum Value: Sendable {
    case text(String)
    /// A list, a structure or a set of alternatives.
    case structure(XMLTree)
  }

  enum Space {
    static let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    static let cameraRaw = "http://ns.adobe.com/camera-raw-settings/1.0/"
    static let apple = "http://ns.apple.com/adjustment-settings/1.0/"
    static let tiff = "http://ns.adobe.com/tiff/1.0/"
    static let photoshop = "http://ns.adobe.com/photoshop/1.0/"
    static let darktable = "http://darktable.sf.net/"
  }

  private var properties: [(name: XMLTree.QualifiedName, value: Value)] = []
  /// The first text value of each property.
  private var texts: [XMLTree.QualifiedName: String] = [:]
  /// A property that occurs twice with different text; programs differ in which one they use.
  private var contradiction: XMLTree.QualifiedName?

  /// nil if `root` is not an XMP packet.
  init?(_ root: XMLTree) {
    let rdf = XMLTree.QualifiedName(space: Space.rdf, local: "RDF")
    guard let graph = root.qualifiedName == rdf ? root : root.children.first(where: { $0.qualifiedName == rdf }) else {
      return nil
    }
    for description in graph.children
    where description.qualifiedName == XMLTree.QualifiedName(space: Space.rdf, local: "Description") {
      for (name, value) in description.attributes where name.space != Space.rdf && !name.space.isEmpty {
        add(name, .text(value))
      }
      for child in description.children {
        let isText = child.children.isEmpty && child.attributes.isEmpty
        add(child.qualifiedName, isText ? .text(child.text) : .structure(child))
      }
    }
  }

  private mutating func add(_ name: XMLTree.QualifiedName, _ value: Value) {
    properties.append((name, value))
    guard case .text(let text) = value else { return }
    if let known = texts[name] {
      if known != text, Self.isUsed(name.space) { contradiction = contradiction ?? name }
    } else {
      texts[name] = text
    }
  }

  private static func isUsed(_ space: String) -> Bool {
    [Space.cameraRaw, Space.apple, Space.tiff, Space.photoshop].contains(space)
  }

  func all(in space: String) -> [(name: String, value: Value)] {
    properties.filter { $0.name.space == space }.map { ($0.name.local, $0.value) }
  }

  func text(_ local: String, in space: String) -> String? {
    texts[XMLTree.QualifiedName(space: space, local: local)]?.trimmed
  }

  func number(_ local: String, in space: String) -> Double? {
    text(local, in: space).flatMap(Self.number).flatMap { $0.isFinite ? $0 : nil }
  }

  /// A decimal number, which may begin with a plus sign; no hexadecimal one. XMP Specification Part 1 §8.2.1.
  static func number(_ text: String) -> Double? {
    text.utf8.allSatisfy { "0123456789+-.eE".utf8.contains($0) } ? Double(text) : nil
  }

  /// Whether the packet applies to a photo with this extension. With IMG_1.CR2 beside IMG_1.JPG, a packet may name its
  /// file.
  func isFor(_ ending: String) -> Bool {
    guard let named = text("SidecarForExtension", in: Space.photoshop), !named.isEmpty else { return true }
    return named.lowercased() == ending.lowercased()
  }

  var sidecar: Sidecar {
    do throws(RenditionRefusal) {
      if let contradiction { throw RenditionRefusal("\(contradiction.local.prefix(60)) is there twice") }
      if all(in: Space.darktable).contains(where: { $0.name == "history" && !$0.value.isEmpty }) {
        throw RenditionRefusal("it was edited with darktable")
      }
      let (adobe, apple) = (try cameraRawFrame(), try appleFrame())
      if adobe != .whole, apple != .whole { throw RenditionRefusal("two programs have cut it") }
      let edit = PhotoEdit(adobe == .whole ? apple : adobe, orientation: try orientation())
      return edit == PhotoEdit() ? .nothing : .edit(edit)
    } catch {
      return .refused(error)
    }
  }

  private func orientation() throws(RenditionRefusal) -> PhotoOrientation? {
    guard let text = text("Orientation", in: Space.tiff) else { return nil }
    guard let orientation = Int(text).flatMap(PhotoOrientation.init) else {
      throw RenditionRefusal("tiff:Orientation is '\(text.prefix(40))'")
    }
    return orientation
  }

  /// The geometry of edits by iOS 7: a transform and a crop rectangle. Throws if there are filters that change colours.
  private func appleFrame() throws(RenditionRefusal) -> PhotoEdit.Frame {
    let found = all(in: Space.apple)
    if found.isEmpty { return .whole }
    var transform = PhotoEdit.Transform()
    var crop: PhotoEdit.Rectangle?
    let frame = ["AffineA", "AffineB", "AffineC", "AffineD", "AffineX", "AffineY", "CropX", "CropY", "CropW", "CropH"]
    let numbers = frame.map { number($0, in: Space.apple) }
    for (names, values) in [(frame[..<6], numbers[..<6]), (frame[6...], numbers[6...])] {
      if values.contains(where: { $0 == nil }), found.contains(where: { names.contains($0.name) }) {
        throw RenditionRefusal("aas:\(names.first!) and its like are not all there")
      }
    }
    for (name, value) in found where !frame.contains(name) && !value.isNeutral {
      throw RenditionRefusal("aas:\(name) is \(value.shown)")
    }
    let known = numbers.map { $0 ?? 0 }
    if numbers[0] != nil {
      (transform.a, transform.b, transform.c, transform.d) = (known[0], known[1], known[2], known[3])
      (transform.tx, transform.ty) = (known[4], known[5])
    }
    if numbers[6] != nil {
      crop = PhotoEdit.Rectangle(x: known[6], y: known[7], width: known[8], height: known[9])
    }
    return transform == PhotoEdit.Transform() && crop == nil ? .whole : .pixels(transform: transform, crop: crop)
  }
}

extension XMPPacket.Value {
  /// Whether the property has no effect on the picture.
  var isNeutral: Bool {
    switch self {
    case .text(let text):
      let text = text.trimmed
      return text.isEmpty || text == "False" || text == "false" || XMPPacket.number(text) == 0
    case .structure: return isEmpty
    }
  }

  var isEmpty: Bool {
    switch self {
    case .text(let text): text.trimmed.isEmpty
    case .structure(let node): node.isEmpty
    }
  }

  /// The value for messages, truncated because the file is untrusted.
  var shown: String {
    switch self {
    case .text(let text): "'\(text.trimmed.prefix(40))'"
    case .structure: "a list"
    }
  }
}

extension XMLTree {
  /// Whether the subtree contains no text.
  fileprivate var isEmpty: Bool {
    text.trimmed.isEmpty && children.allSatisfy(\.isEmpty)
      && attributes.allSatisfy { $0.name.space == XMPPacket.Space.rdf || $0.value.isEmpty }
  }
}

extension String {
  var trimmed: String {
    let end = utf8.reversed().drop { $0 == 0x20 || (0x09...0x0D).contains($0) }.count
    return String(Substring(utf8.prefix(end).drop { $0 == 0x20 || (0x09...0x0D).contains($0) }))
  }
}
