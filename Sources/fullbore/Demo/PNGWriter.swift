import Blobs

/// A PNG of 8-bit RGB, written row by row: valid, not compressed, in constant memory. W3C PNG, third edition.
final class PNGWriter {
  private let file: FileWriter
  private var checksum = Adler32()
  /// Filtered rows that make no full block yet.
  private var block: [UInt8] = []
  private var isFirst = true
  /// A stored block's length is a 16-bit number. RFC 1951 §3.2.4.
  private let blockSize = 65535

  init(_ file: FileWriter, width: Int, height: Int) throws(DemoError) {
    self.file = file
    block.reserveCapacity(blockSize)
    try file.write([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
    // 8 bits a sample, truecolour; the only compression and filter methods there are; not interlaced. §11.2.1.
    try writeChunk("IHDR", bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [8, 2, 0, 0, 0])
  }

  /// Red, green and blue of each pixel, from left to right.
  func write(row: [UInt8]) throws(DemoError) {
    try append([0])  // filter type "None" §9.2
    try append(row[...])
  }

  func finish() throws(DemoError) {
    try writeBlock(isLast: true)
    try writeChunk("IEND", [])
    try file.flush()
  }

  private func append(_ bytes: ArraySlice<UInt8>) throws(DemoError) {
    var rest = bytes
    while !rest.isEmpty {
      let part = rest.prefix(blockSize - block.count)
      block.append(contentsOf: part)
      rest = rest.dropFirst(part.count)
      if block.count == blockSize { try writeBlock(isLast: false) }
    }
  }

  /// One stored block in an IDAT of its own; zlib's header before the first, its checksum after the last. RFC 1950 §2.2.
  private func writeBlock(isLast: Bool) throws(DemoError) {
    checksum.update(block)
    let length = UInt16(block.count)
    var data: [UInt8] = isFirst ? [0x78, 0x01] : []
    data += [isLast ? 1 : 0, UInt8(length & 255), UInt8(length >> 8), UInt8(~length & 255), UInt8(~length >> 8)]
    data += block
    if isLast { data += bigEndian(checksum.value) }
    try writeChunk("IDAT", data)
    block.removeAll(keepingCapacity: true)
    isFirst = false
  }

  private func writeChunk(_ type: String, _ data: [UInt8]) throws(DemoError) {
    var crc = CRC32()
    crc.update(Array(type.utf8))
    crc.update(data)
    try file.write(bigEndian(UInt32(data.count)) + Array(type.utf8))
    try file.write(data)
    try file.write(bigEndian(crc.value))
  }
}

func bigEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
  withUnsafeBytes(of: number.bigEndian) { Array($0) }
}

/// The checksum of PNG's chunks. PNG, annex D.
struct CRC32 {
  private var state: UInt32 = 0xFFFF_FFFF

  var value: UInt32 { ~state }

  mutating func update(_ bytes: [UInt8]) {
    var state = state
    Self.table.withUnsafeBufferPointer { table in
      bytes.withUnsafeBufferPointer { bytes in
        for byte in bytes { state = table[Int((state ^ UInt32(byte)) & 255)] ^ (state >> 8) }
      }
    }
    self.state = state
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
  }
}

/// The checksum of zlib's format. RFC 1950 §8.
struct Adler32 {
  private var a: UInt32 = 1
  private var b: UInt32 = 0

  var value: UInt32 { b << 16 | a }

  mutating func update(_ bytes: [UInt8]) {
    var (a, b) = (a, b)
    bytes.withUnsafeBufferPointer { bytes in
      var index = 0
      while index < bytes.count {
        // 5552 is the most bytes whose sums stay within 32 bits.
        let end = min(index + 5552, bytes.count)
        while index < end {
          a &+= UInt32(bytes[index])
          b &+= a
          index += 1
        }
        a %= 65521
        b %= 65521
      }
    }
    (self.a, self.b) = (a, b)
  }
}
