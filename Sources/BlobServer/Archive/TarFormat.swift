/// Files in a tar archive, in the pax interchange format. POSIX.1-2017, pax, "ustar Interchange Format".
enum TarFormat {
  private static let block = 512
  /// Two blocks of zeros.
  static let end = [UInt8](repeating: 0, count: 2 * block)

  /// Fills the last block of the file.
  static func padding(_ member: ArchiveFormat.Member) -> [UInt8] { padding(after: member.length) }

  private static func padding(after length: Int64) -> [UInt8] {
    [UInt8](repeating: 0, count: Int((Int64(block) - length % Int64(block)) % Int64(block)))
  }

  /// The block that describes the file, after a block with what does not fit into its fields.
  static func header(_ member: ArchiveFormat.Member) -> [UInt8] {
    var records: [UInt8] = []
    if member.name.count > 100 || member.name.contains(where: { $0 > 0x7F }) {
      records += record("path", member.name)
    }
    if member.length > mostInEleven { records += record("size", Array("\(member.length)".utf8)) }
    if !(0...mostInEleven).contains(member.seconds) { records += record("mtime", Array("\(member.seconds)".utf8)) }
    var bytes: [UInt8] = []
    if !records.isEmpty {
      bytes += header(Array("PaxHeader".utf8), length: Int64(records.count), seconds: 0, kind: "x", mode: 0o644)
      bytes += records + padding(after: Int64(records.count))
    }
    return bytes
      + header(
        member.name, length: min(member.length, mostInEleven), seconds: min(max(member.seconds, 0), mostInEleven),
        kind: member.isFolder ? "5" : "0", mode: member.isFolder ? 0o755 : 0o644)
  }

  /// The largest number of eleven octal digits: 8 GiB - 1.
  private static let mostInEleven: Int64 = 0o777_7777_7777

  private static func header(
    _ name: [UInt8], length: Int64, seconds: Int64, kind: Unicode.Scalar, mode: Int64
  ) -> [UInt8] {
    var bytes = Array(name.prefix(100))
    bytes += [UInt8](repeating: 0, count: 100 - bytes.count)
    bytes += octal(mode, 8) + octal(0, 8) + octal(0, 8) + octal(length, 12) + octal(seconds, 12)
    let checksum = bytes.count
    bytes += [UInt8](repeating: UInt8(ascii: " "), count: 8) + [UInt8(ascii: kind)]
    bytes += [UInt8](repeating: 0, count: 100) + Array("ustar\0".utf8) + Array("00".utf8)
    bytes += [UInt8](repeating: 0, count: block - bytes.count)
    let sum = bytes.reduce(0) { $0 + Int64($1) }
    bytes.replaceSubrange(checksum..<checksum + 8, with: octal(sum, 7) + [UInt8(ascii: " ")])
    return bytes
  }

  /// Octal digits with a NUL at the end, `width` bytes in all.
  private static func octal(_ number: Int64, _ width: Int) -> [UInt8] {
    let digits = Array(String(number, radix: 8).utf8)
    return [UInt8](repeating: UInt8(ascii: "0"), count: width - 1 - digits.count) + digits + [0]
  }

  /// `LENGTH KEYWORD=VALUE\n`, where the length counts its own digits.
  private static func record(_ keyword: String, _ value: [UInt8]) -> [UInt8] {
    let rest = Array(" \(keyword)=".utf8) + value + [UInt8(ascii: "\n")]
    var length = rest.count + 1
    while "\(length)".utf8.count + rest.count != length { length = "\(length)".utf8.count + rest.count }
    return Array("\(length)".utf8) + rest
  }
}
