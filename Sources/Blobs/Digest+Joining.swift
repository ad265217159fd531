extension Digest {
  /// The checksum of `first`'s bytes followed by `second`'s, of which there are `count`: none of them is read again.
  /// nil: this algorithm cannot tell; CRCs can.
  package static func joined(
    _ first: [UInt8], _ second: [UInt8], count: Int64, _ algorithm: Algorithm
  ) -> [UInt8]? {
    switch algorithm {
    case .crc32c:
      let sum = CRC32C.joined(
        UInt32(truncatingIfNeeded: number(first)), UInt32(truncatingIfNeeded: number(second)), count: count)
      return bytes(UInt64(sum), 4)
    case .crc64nvme: return bytes(CRC64NVME.joined(number(first), number(second), count: count), 8)
    default: return nil
    }
  }

  private static func number(_ value: [UInt8]) -> UInt64 { value.reduce(0) { $0 << 8 | UInt64($1) } }

  private static func bytes(_ number: UInt64, _ count: Int) -> [UInt8] {
    (1...count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - $0))) }
  }
}

extension CRC32C {
  /// Shifting by n bytes multiplies by x to the 8 n, modulo the polynomial; the highest bit stands for x to the 0.
  static func joined(_ first: UInt32, _ second: UInt32, count: Int64) -> UInt32 {
    precondition(count >= 0)
    var shift: UInt32 = 1 << 31
    var square: UInt32 = 1 << 23
    var rest = count
    while rest > 0 {
      if rest & 1 == 1 { shift = product(square, shift) }
      square = product(square, square)
      rest >>= 1
    }
    return product(shift, first) ^ second
  }

  private static func product(_ a: UInt32, _ b: UInt32) -> UInt32 {
    var (sum, b) = (UInt32(0), b)
    for bit in (0..<32 as Range<UInt32>).reversed() {
      if a >> bit & 1 == 1 { sum ^= b }
      b = b & 1 == 0 ? b >> 1 : b >> 1 ^ 0x82F6_3B78
    }
    return sum
  }
}
