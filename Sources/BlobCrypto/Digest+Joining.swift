extension Digest {
  /// The checksum of `first`'s bytes followed by `second`'s `count` bytes, computed from the two checksums without
  /// reading the bytes again. Returns nil if the algorithm does not support this; CRCs do.
  package static func joined(
    _ first: [UInt8], _ second: [UInt8], count: Int64, _ algorithm: Algorithm
  ) -> [UInt8]? {
    switch algorithm {
    case .crc32c: joined(first, second, count, CRC32C.polynomial)
    case .crc64nvme: joined(first, second, count, CRC64NVME.polynomial)
    default: nil
    }
  }

  /// Shifting by n bytes multiplies by x^(8n) modulo the polynomial; the most significant bit stands for x^0.
  private static func joined<Sum: FixedWidthInteger & UnsignedInteger>(
    _ first: [UInt8], _ second: [UInt8], _ count: Int64, _ polynomial: Sum
  ) -> [UInt8] {
    precondition(count >= 0)
    var shift: Sum = 1 << (Sum.bitWidth - 1)
    var square = shift >> 8
    var rest = count
    while rest > 0 {
      if rest & 1 == 1 { shift = product(square, shift, polynomial) }
      square = product(square, square, polynomial)
      rest >>= 1
    }
    let sum = product(shift, number(first), polynomial) ^ number(second)
    return (1...first.count).map { UInt8(truncatingIfNeeded: sum >> (8 * (first.count - $0))) }
  }

  private static func product<Sum: FixedWidthInteger & UnsignedInteger>(_ a: Sum, _ b: Sum, _ polynomial: Sum) -> Sum {
    var (sum, b) = (Sum(0), b)
    for bit in (0..<Sum.bitWidth).reversed() {
      if a >> bit & 1 == 1 { sum ^= b }
      b = b & 1 == 0 ? b >> 1 : b >> 1 ^ polynomial
    }
    return sum
  }

  private static func number<Sum: FixedWidthInteger>(_ value: [UInt8]) -> Sum {
    value.reduce(0) { $0 << 8 | Sum($1) }
  }
}
