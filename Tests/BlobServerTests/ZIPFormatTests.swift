import Testing

@testable import BlobServer

/// Where fields of 32 bits are too small. `Tests/Robustness/archives.py long` opens such archives with other programs.
struct ZIPFormatTests {
  private func number(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> Int64 {
    bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | Int64($1) }
  }

  @Test(arguments: [0, 1, (1 << 32) - 2, (1 << 32) - 1, 1 << 32, 1 << 43] as [Int64])
  func headersHaveTheirLengths(_ length: Int64) {
    let member = ArchiveFormat.Member(name: Array("a/ü".utf8), isFolder: false, length: length, seconds: 1_700_000_000)
    let isLarge = length >= 1 << 32 - 1
    let local = ZIPFormat.localHeader(member)
    #expect(local.count == 30 + 4 + Int(number(local, 28, 2)) && number(local, 26, 2) == 4)
    #expect(number(local, 28, 2) == (isLarge ? 29 : 9) && number(local, 4, 2) == (isLarge ? 45 : 20))
    #expect(number(local, 18, 4) == min(length, 1 << 32 - 1))
    #expect(ZIPFormat.descriptor(member, sum: 7).count == (length == 0 ? 0 : isLarge ? 24 : 16))
    for offset: Int64 in [0, 1 << 32 - 2, 1 << 32 - 1, 1 << 40] {
      let entry = ZIPFormat.directoryHeader(member, sum: 7, offset: offset)
      let large = (isLarge ? 16 : 0) + (offset >= 1 << 32 - 1 ? 8 : 0)
      #expect(entry.count == 46 + 4 + Int(number(entry, 30, 2)) && number(entry, 28, 2) == 4)
      #expect(number(entry, 30, 2) == Int64(large == 0 ? 9 : 4 + large + 9))
      #expect(number(entry, 6, 2) == (large > 0 ? 45 : 20) && number(entry, 16, 4) == 7)
      if isLarge { #expect(number(entry, 54, 8) == length && number(entry, 62, 8) == length) }
      if offset >= 1 << 32 - 1 { #expect(number(entry, isLarge ? 70 : 54, 8) == offset) }
    }
  }

  @Test func theEndHasLargeFieldsWhereTheyAreNeeded() {
    #expect(ZIPFormat.end(count: 65_534, directory: 10..<20).count == 22)
    for (count, directory) in [
      (65_535, 10..<20), (1, (1 << 32 - 1)..<(1 << 32)), (1, 0..<(1 << 32 - 1)),
    ] as [(Int, Range<Int64>)] {
      let end = ZIPFormat.end(count: count, directory: directory)
      #expect(
        end.count == 56 + 20 + 22 && number(end, 24, 8) == Int64(count) && number(end, 64, 8) == directory.upperBound)
      #expect(
        number(end, 40, 8) == directory.upperBound - directory.lowerBound && number(end, 48, 8) == directory.lowerBound)
    }
  }
}
