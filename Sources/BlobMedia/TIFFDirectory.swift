/// The tags of a TIFF block, found by their numbers. It trusts no offset and no count in there. TIFF 6.0 §2.
struct TIFFDirectory {
  /// Bytes by their place in the block: fewer than are asked for where it ends, none outside of it.
  private let bytes: (_ place: Int64, _ count: Int) -> [UInt8]
  private let isLittleEndian: Bool
  /// Where the directory of the main picture is.
  private let main: Int64

  /// nil: this is no TIFF.
  init?(_ block: ArraySlice<UInt8>) {
    self.init { place, count in
      guard place >= 0, place < Int64(block.count) else { return [] }
      return Array(block.dropFirst(Int(place)).prefix(count))
    }
  }

  /// The block that is a part of a file, which may be large: only what is asked for is read.
  init?(_ file: BytesAt, in range: Range<Int64>) {
    self.init { place, count in
      guard place >= 0, place < range.upperBound - range.lowerBound else { return [] }
      let count = Int(min(Int64(count), range.upperBound - range.lowerBound - place))
      return file(range.lowerBound + place, count) ?? []
    }
  }

  private init?(_ bytes: @escaping (Int64, Int) -> [UInt8]) {
    let head = bytes(0, 8)
    let mark = head.prefix(2)
    guard head.count == 8, mark.elementsEqual("II".utf8) || mark.elementsEqual("MM".utf8) else { return nil }
    self.bytes = bytes
    isLittleEndian = mark.elementsEqual("II".utf8)
    func value(_ bytes: ArraySlice<UInt8>) -> Int64 {
      Int64(mark.elementsEqual("II".utf8) ? number(bytes.reversed()) : number(bytes))
    }
    // 42, and what Olympus and Panasonic write in its place.
    guard [42, 0x4F52, 0x5352, 0x55].contains(value(head[2..<4])) else { return nil }
    main = value(head[4..<8])
  }

  /// DateTimeOriginal, else DateTimeDigitized, else DateTime. Some RAW formats have the first in their main directory.
  var captureDate: CaptureDate? {
    let main = entries([0x8769, 0x9003, 0x9004, 0x0132], in: self.main)
    let exif = main[0x8769].map { entries([0x9003, 0x9004], in: $0.value) } ?? [:]
    for entry in [exif[0x9003], exif[0x9004], main[0x9003], main[0x9004], main[0x0132]] {
      if let date = entry.flatMap({ date($0) }) { return date }
    }
    return nil
  }

  /// As the main picture has it; nil where it says nothing, or something that is not known.
  var orientation: PhotoOrientation? {
    guard let entry = entries([0x0112], in: main)[0x0112], entry.type == 3 else { return nil }
    return PhotoOrientation(entry.short)
  }

  private struct Entry {
    let type: Int
    let count: Int64
    /// The four bytes of its value, or of the place where that is; the first two of them alone.
    let value: Int64
    let short: Int
  }

  private func date(_ entry: Entry) -> CaptureDate? {
    guard entry.type == 2, (19...64).contains(entry.count) else { return nil }
    return CaptureDate(exif: bytes(entry.value, 19))
  }

  /// The first entry of each of these tags.
  private func entries(_ tags: Set<Int>, in directory: Int64) -> [Int: Entry] {
    let count = value(bytes(directory, 2)[...])
    let table = bytes(directory + 2, Int(min(count, 512)) * 12)
    var found: [Int: Entry] = [:]
    for start in stride(from: 0, through: table.count - 12, by: 12) {
      let tag = Int(value(table[start..<start + 2]))
      guard tags.contains(tag), found[tag] == nil else { continue }
      found[tag] = Entry(
        type: Int(value(table[start + 2..<start + 4])), count: value(table[start + 4..<start + 8]),
        value: value(table[start + 8..<start + 12]), short: Int(value(table[start + 8..<start + 10])))
    }
    return found
  }

  /// Of at most four bytes.
  private func value(_ bytes: ArraySlice<UInt8>) -> Int64 {
    Int64(isLittleEndian ? number(bytes.reversed()) : number(bytes))
  }
}
