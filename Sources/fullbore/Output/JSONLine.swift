import BlobCrypto
import BlobHTTP
import Blobs
import Platform

/// One JSON object on one line. Members are in the order in which they were added.
struct JSONLine: Sendable {
  private var members = ""

  init(_ event: String) { add("event", event) }

  /// An object inside another one, without an event.
  init() {}

  init(_ event: String, _ file: PushedFile) {
    self.init(event)
    add(path: file.relative)
    add("source", file.path.description)
    if let length = file.length { add("length", length) }
    if file.id != 0 { add("id", file.id) }
  }

  var text: String { "{\(members)}" }

  /// The text of an event, with the time.
  func timed(at destination: String? = nil) -> String {
    var line = self
    if let destination { line.add("destination", destination) }
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    line.add("time", seconds: .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec))
    return line.text
  }

  mutating func add(_ name: String, _ value: String) { add(raw: name, JSONText.quoted(value)) }
  mutating func add(_ name: String, _ value: some BinaryInteger) { add(raw: name, "\(value)") }
  mutating func add(_ name: String, _ value: Bool) { add(raw: name, "\(value)") }
  mutating func add(_ name: String, seconds value: Duration) {
    add(raw: name, Quantity.fixed(Quantity.seconds(value), decimals: 3))
  }

  mutating func add(_ name: String, objects: [JSONLine]) {
    add(raw: name, "[\(objects.map(\.text).joined(separator: ","))]")
  }

  /// Adds `path`, and `path_bytes` in hexadecimal if the name is not UTF-8.
  mutating func add(path: BytePath) {
    add("path", path.description)
    if !path.isUTF8 { add("path_bytes", Digest.hex(path.bytes)) }
  }

  private mutating func add(raw name: String, _ value: String) {
    if !members.isEmpty { members += "," }
    members += "\(JSONText.quoted(name)):\(value)"
  }
}
