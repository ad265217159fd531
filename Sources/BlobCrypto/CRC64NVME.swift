/// CRC-64/NVME, computed eight bytes at a time. NVM Express NVM Command Set Specification 1.0b §5.2.1.3.4.3.
struct CRC64NVME {
  static let polynomial: UInt64 = 0x9A6C_9329_AC4B_C9B5
  private var state: UInt64 = ~0

  /// Processes the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var state = state
    Self.tables.withUnsafeBufferPointer { tables in
      var place = 0
      while bytes.count - place >= 8 {
        state ^= UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))
        var next: UInt64 = 0
        for index in 0..<8 { next ^= tables[(7 - index) << 8 | Int(state >> UInt64(8 * index) & 0xFF)] }
        state = next
        place += 8
      }
      while place < bytes.count {
        state = state >> 8 ^ tables[Int((state ^ UInt64(bytes[place])) & 0xFF)]
        place += 1
      }
    }
    self.state = state
  }

  /// The checksum of all bytes so far, most significant byte first, as S3 writes it.
  var value: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: ~state >> (56 - 8 * $0)) } }

  private static func shifted(_ value: UInt64) -> UInt64 {
    value & 1 == 0 ? value >> 1 : value >> 1 ^ polynomial
  }

  /// Eight tables of 256 entries: table n is for a byte followed by n zero bytes.
  private static let tables: [UInt64] = {
    var tables = (0..<256 as Range<UInt64>).map { byte in (0..<8).reduce(byte) { value, _ in shifted(value) } }
    for index in 256..<2048 {
      let before = tables[index - 256]
      tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
    }
    return tables
  }()
}
