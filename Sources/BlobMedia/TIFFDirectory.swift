/// The tags of a TIFF block, found by their numbers. It trusts no offset and no count in there. TIFF 6.0 §2.
struct TIFFDirectory {
  private let bytes: ArraySlice<UInt8>
  private let isLittleEndian: Bool

  /// nil: this is no TIFF.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count >= 8 else { return nil }
    let mark = bytes.prefix(2)
    guard mark.elementsEqual("II".utf8) || mark.elementsEqual("MM".utf8) else { return nil }
    self.bytes = bytes
    isLittleEndian = mark.elementsEqual("II".utf8)
    // 42, and what Olympus and Panasonic write in its place.
    guard let magic = number(at: 2, 2), [42, 0x4F52, 0x5352, 0x55].contains(magic) else { return nil }
  }

  /// DateTimeOriginal, else DateTimeDigitized, else DateTime.
  static func captureDate(in bytes: ArraySlice<UInt8>) -> CaptureDate? {
    guard let tiff = TIFFDirectory(bytes), let main = tiff.number(at: 4, 4) else { return nil }
    if let exif = tiff.entry(0x8769, in: main), let place = tiff.number(at: exif + 8, 4) {
      for tag in [0x9003, 0x9004] {
        if let date = tiff.date(tag, in: place) { return date }
      }
    }
    return tiff.date(0x0132, in: main)
  }

  /// As the main picture has it; nil where it says nothing, or something that is not known.
  static func orientation(in bytes: ArraySlice<UInt8>) -> PhotoOrientation? {
    guard let tiff = TIFFDirectory(bytes), let main = tiff.number(at: 4, 4), let entry = tiff.entry(0x0112, in: main),
      tiff.number(at: entry + 2, 2) == 3, let number = tiff.number(at: entry + 8, 2)
    else { return nil }
    return PhotoOrientation(number)
  }

  private func date(_ tag: Int, in directory: Int) -> CaptureDate? {
    guard let entry = entry(tag, in: directory), number(at: entry + 2, 2) == 2,
      let count = number(at: entry + 4, 4), (19...64).contains(count), let place = number(at: entry + 8, 4),
      let text = slice(at: place, 19)
    else { return nil }
    return CaptureDate(exif: text)
  }

  /// Where the twelve bytes of a tag are.
  private func entry(_ tag: Int, in directory: Int) -> Int? {
    guard let count = number(at: directory, 2) else { return nil }
    for index in 0..<min(count, 512) {
      let place = directory + 2 + index * 12
      guard let found = number(at: place, 2) else { return nil }
      if found == tag { return place }
    }
    return nil
  }

  private func number(at place: Int, _ count: Int) -> Int? {
    guard let slice = slice(at: place, count) else { return nil }
    return isLittleEndian
      ? slice.reversed().reduce(0) { $0 << 8 | Int($1) } : slice.reduce(0) { $0 << 8 | Int($1) }
  }

  private func slice(at place: Int, _ count: Int) -> ArraySlice<UInt8>? {
    guard place >= 0, place <= bytes.count - count else { return nil }
    return bytes[(bytes.startIndex + place)..<(bytes.startIndex + place + count)]
  }
}
