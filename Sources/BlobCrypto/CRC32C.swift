import CIntrinsics

/// CRC-32C (Castagnoli), computed with processor instructions where available. RFC 3720 §12.1, §B.4.
struct CRC32C {
  static let polynomial: UInt32 = 0x82F6_3B78
  private var state: UInt32 = ~0
  private let isHardware: Bool

  init(usesHardware: Bool = true) { isHardware = usesHardware && fb_has_crc32c() != 0 }

  /// Processes the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    if isHardware, let start = bytes.baseAddress {
      state = fb_crc32c(state, start.assumingMemoryBound(to: UInt8.self), bytes.count)
      return
    }
    for byte in bytes { state = state >> 8 ^ Self.table[Int((state ^ UInt32(byte)) & 0xFF)] }
  }

  /// The checksum of all bytes so far, most significant byte first, as S3 and others write it.
  var value: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: ~state >> (24 - 8 * $0)) } }

  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial }
  }
}
