import Platform

/// Files in a ZIP archive, stored without compression. PKWARE APPNOTE 6.3.10.
///
/// The checksum of a file follows its bytes, in a data descriptor (§4.3.9), because it is known only then. The lengths are
/// in the local header nevertheless: readers that do not seek need them to find the end of a stored file. Fields of 64 bits
/// (§4.5.3) are used where a number does not fit into 32, since old readers know only those.
enum ZIPFormat {
  private static let most32 = Int64(UInt32.max)

  static func localHeader(_ member: ArchiveFormat.Member) -> [UInt8] {
    let isLarge = member.length >= most32
    var extra: [UInt8] = []
    if isLarge { extra.add(0x0001 as UInt16, 16 as UInt16, member.length, member.length) }
    extra += time(member)
    var header: [UInt8] = []
    header.add(0x0403_4B50 as UInt32)
    header += common(member, isLarge: isLarge)
    header.add(0 as UInt32, size(member), size(member), UInt16(member.name.count), UInt16(extra.count))
    return header + member.name + extra
  }

  static func descriptor(_ member: ArchiveFormat.Member, sum: UInt32) -> [UInt8] {
    if !hasDescriptor(member) { return [] }
    var bytes: [UInt8] = []
    bytes.add(0x0807_4B50 as UInt32, sum)
    if member.length >= most32 {
      bytes.add(member.length, member.length)
    } else {
      bytes.add(size(member), size(member))
    }
    return bytes
  }

  static func directoryHeader(_ member: ArchiveFormat.Member, sum: UInt32, offset: Int64) -> [UInt8] {
    var large: [UInt8] = []
    if member.length >= most32 { large.add(member.length, member.length) }
    if offset >= most32 { large.add(offset) }
    var extra: [UInt8] = []
    if !large.isEmpty { extra.add(0x0001 as UInt16, UInt16(large.count)) }
    extra += large + time(member)
    var header: [UInt8] = []
    // Made on Unix, so that the attributes below have the permissions of Unix in their upper half.
    header.add(0x0201_4B50 as UInt32, 3 << 8 | 45 as UInt16)
    header += common(member, isLarge: !large.isEmpty)
    header.add(sum, size(member), size(member), UInt16(member.name.count), UInt16(extra.count))
    let attributes: UInt32 = member.isFolder ? 0o040755 << 16 | 0x10 : 0o100644 << 16
    header.add(0 as UInt16, 0 as UInt16, 0 as UInt16, attributes, UInt32(min(offset, most32)))
    return header + member.name + extra
  }

  static func end(count: Int, directory: Range<Int64>) -> [UInt8] {
    let length = directory.upperBound - directory.lowerBound
    var bytes: [UInt8] = []
    if count >= 0xFFFF || directory.lowerBound >= most32 || length >= most32 {
      bytes.add(0x0606_4B50 as UInt32, 44 as Int64, 3 << 8 | 45 as UInt16, 45 as UInt16, 0 as UInt32, 0 as UInt32)
      bytes.add(Int64(count), Int64(count), length, directory.lowerBound)
      bytes.add(0x0706_4B50 as UInt32, 0 as UInt32, directory.upperBound, 1 as UInt32)
    }
    let shortCount = UInt16(min(count, 0xFFFF))
    bytes.add(0x0605_4B50 as UInt32, 0 as UInt16, 0 as UInt16, shortCount, shortCount)
    bytes.add(UInt32(min(length, most32)), UInt32(min(directory.lowerBound, most32)), 0 as UInt16)
    return bytes
  }

  /// The checksum of no bytes is known in advance.
  private static func hasDescriptor(_ member: ArchiveFormat.Member) -> Bool { !member.isFolder && member.length > 0 }

  private static func size(_ member: ArchiveFormat.Member) -> UInt32 { UInt32(min(member.length, most32)) }

  /// The fields that both headers of a file have: version, flags, method and time. Bit 11 says that the name is UTF-8.
  private static func common(_ member: ArchiveFormat.Member, isLarge: Bool) -> [UInt8] {
    let flags: UInt16 = 1 << 11 | (hasDescriptor(member) ? 1 << 3 : 0)
    var bytes: [UInt8] = []
    let version: UInt16 = isLarge ? 45 : 20
    bytes.add(version, flags, 0 as UInt16)
    // UTC, although the field is meant for local time: the bytes of an archive must not depend on the season.
    var time = time_t(min(max(member.seconds, 315_532_800), 4_354_819_198))  // 1980 to 2107
    var parts = tm()
    gmtime_r(&time, &parts)
    bytes.add(UInt16(parts.tm_hour << 11 | parts.tm_min << 5 | parts.tm_sec / 2))
    bytes.add(UInt16((parts.tm_year - 80) << 9 | (parts.tm_mon + 1) << 5 | parts.tm_mday))
    return bytes
  }

  /// The extended timestamp of Info-ZIP: seconds since 1970, in 32 bits.
  private static func time(_ member: ArchiveFormat.Member) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.add(0x5455 as UInt16, 5 as UInt16, 1 as UInt8, Int32(clamping: member.seconds))
    return bytes
  }
}

extension [UInt8] {
  /// Appends numbers, least significant byte first.
  fileprivate mutating func add(_ numbers: any FixedWidthInteger...) {
    for number in numbers { append(littleEndian: number) }
  }

  private mutating func append(littleEndian number: some FixedWidthInteger) {
    for shift in stride(from: 0, to: number.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: number >> shift)) }
  }
}
