import BlobCrypto
import Blobs

/// One JSON object on one line, its members in the order they were added.
struct JSONLine: Sendable {
  private var members = ""

  init(_ event: String) { add("event", event) }

  init(_ event: String, _ file: PushedFile) {
    self.init(event)
    add(path: file.relative)
    add("source", file.path.description)
    if let length = file.length { add("length", length) }
    if file.id != 0 { add("id", file.id) }
  }

  var text: String { "{\(members)}" }

  mutating func add(_ name: String, _ value: String) { add(raw: name, Self.quoted(value)) }
  mutating func add(_ name: String, _ value: some BinaryInteger) { add(raw: name, "\(value)") }
  mutating func add(_ name: String, _ value: Bool) { add(raw: name, "\(value)") }
  mutating func add(_ name: String, seconds value: Duration) {
    add(raw: name, Quantity.fixed(Quantity.seconds(value), decimals: 3))
  }

  /// `path`, and `path_bytes` in hexadecimal where the name is not UTF-8.
  mutating func add(path: BytePath) {
    add("path", path.description)
    if !path.isUTF8 { add("path_bytes", Digest.hex(path.bytes)) }
  }

  private mutating func add(raw name: String, _ value: String) {
    if !members.isEmpty { members += "," }
    members += "\(Self.quoted(name)):\(value)"
  }

  /// RFC 8259 §7. Lines stay lines: the separators U+2028 and U+2029 are escaped too.
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where scalar.value < 0x20 || scalar.value == 0x7F || scalar.value == 0x2028 || scalar.value == 0x2029:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
