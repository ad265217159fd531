/// Bytes of a connection that were read but not parsed yet.
struct UnparsedBytes {
  private(set) var bytes: [UInt8] = []
  /// The bytes can be parsed at once: only other connections had to have their turn first.
  private(set) var hasTurnLeft = false

  var isEmpty: Bool { bytes.isEmpty }

  mutating func keep(_ rest: UnsafeRawBufferPointer, hasTurnLeft: Bool) {
    (bytes, self.hasTurnLeft) = (Array(rest), hasTurnLeft)
  }

  mutating func clear() { (bytes, hasTurnLeft) = ([], false) }

  mutating func take() -> [UInt8] {
    defer { clear() }
    return bytes
  }
}
