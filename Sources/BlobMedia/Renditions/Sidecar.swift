import Blobs

/// The edit in a sidecar file.
public enum Sidecar: Sendable, Hashable {
  /// The sidecar describes no edit.
  case nothing
  /// The sidecar describes exactly this edit.
  case edit(PhotoEdit)
  /// The edit cannot be rendered exactly, or the sidecar cannot be read.
  case refused(RenditionRefusal)

  /// Maximum length of a sidecar in bytes.
  public static let most = 1 << 20

  /// Parses a file beside a photo: Apple's `.AAE` or an XMP packet.
  ///
  /// - `ending`: the extension of the photo's name. Some sidecars apply only to one file of a pair.
  public init(_ bytes: [UInt8], besidePhoto ending: String) {
    let refusal: RenditionRefusal
    if bytes.starts(with: "bplist".utf8) {
      refusal = RenditionRefusal("its adjustments are opaque")
    } else if let root = XMLTree(bytes, .none, most: Self.most, depth: 32) {
      if root.name == "plist" {
        self = Self.adjustments(root)
      } else if let packet = XMPPacket(root) {
        self = packet.isFor(ending) ? packet.sidecar : .nothing
      } else {
        self = .nothing
      }
      return
    } else {
      refusal = RenditionRefusal("its sidecar cannot be read")
    }
    self = .refused(refusal)
  }

  /// An `.AAE` file contains either an XMP packet of iOS 7 or data in an undocumented format.
  private static func adjustments(_ list: XMLTree) -> Sidecar {
    let fields = list.children.first?.children ?? []
    func value(_ key: String) -> String? {
      guard let place = fields.firstIndex(where: { $0.name == "key" && $0.text == key }) else { return nil }
      return fields.indices.contains(place + 1) ? fields[place + 1].text : nil
    }
    if let data = value("adjustmentData").flatMap(decodeBase64),
      let root = XMLTree(data, .none, most: Self.most, depth: 32), let packet = XMPPacket(root)
    {
      return packet.sidecar
    }
    let format = [value("adjustmentFormatIdentifier"), value("adjustmentFormatVersion")].compactMap(\.self)
    let name = format.isEmpty ? "" : " (\(format.joined(separator: " ").prefix(80)))"
    return .refused(RenditionRefusal("its adjustments are opaque\(name)"))
  }
}

/// nil if the text is not base64. Blanks and line breaks are allowed anywhere. RFC 4648 §4.
private func decodeBase64(_ text: String) -> [UInt8]? {
  var bytes: [UInt8] = []
  var (bits, count): (UInt32, Int) = (0, 0)
  for character in text.utf8 {
    let value: UInt8
    switch character {
    case 0x41...0x5A: value = character - 0x41
    case 0x61...0x7A: value = character - 0x61 + 26
    case 0x30...0x39: value = character - 0x30 + 52
    case UInt8(ascii: "+"): value = 62
    case UInt8(ascii: "/"): value = 63
    case UInt8(ascii: "="), 0x20, 0x09, 0x0A, 0x0D: continue
    default: return nil
    }
    bits = bits << 6 | UInt32(value)
    count += 6
    if count >= 8 {
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
    }
  }
  return bytes
}
