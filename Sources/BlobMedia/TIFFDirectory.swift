/// Finds the tags of a TIFF block by number. Validates every offset and count. TIFF 6.0 §2.
struct TIFFDirectory {
  /// Reads bytes at an offset in the block. Returns fewer than requested at its end, and none outside it.
  let bytes: (_ place: Int64, _ count: Int) -> [UInt8]
  private let isLittleEndian: Bool
  /// Offset of the main picture's directory.
  let main: Int64

  /// nil if the block is not TIFF.
  init?(_ block: ArraySlice<UInt8>) {
    self.init { place, count in
      guard place >= 0, place < Int64(block.count) else { return [] }
      return Array(block.dropFirst(Int(place)).prefix(count))
    }
  }

  /// A block within a file, which may be large: only the requested bytes are read.
  init?(_ file: RandomAccessBytes, in range: Range<Int64>) {
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
    // The magic number is 42 in TIFF; Olympus and Panasonic use others.
    guard [42, 0x4F52, 0x5352, 0x55].contains(value(head[2..<4])) else { return nil }
    main = value(head[4..<8])
  }

  /// DateTimeOriginal, else DateTimeDigitized, else DateTime. Some RAW formats have DateTimeOriginal in their main
  /// directory.
  var captureDate: CaptureDate? {
    let main = entries([0x8769, 0x9003, 0x9004, 0x0132], in: self.main)
    let exif = main[0x8769].map { entries([0x9003, 0x9004], in: $0.value) } ?? [:]
    for entry in [exif[0x9003], exif[0x9004], main[0x9003], main[0x9004], main[0x0132]] {
      if let date = entry.flatMap({ date($0) }) { return date }
    }
    return nil
  }

  /// Manufacturer and model of the camera, as far as they are there. TIFF 6.0, Make and Model.
  var camera: (make: String?, model: String?) {
    let found = entries([0x010F, 0x0110], in: main)
    return (found[0x010F].flatMap(text), found[0x0110].flatMap(text))
  }

  /// Text of 128 bytes at most; nil: there is none.
  private func text(_ entry: Entry) -> String? {
    guard entry.type == 2, (5...128).contains(entry.count) else { return nil }
    let text = bytes(entry.value, Int(entry.count)).prefix { $0 != 0 }
    return String(validating: text, as: UTF8.self)
  }

  /// The main picture's orientation; nil if it is missing or invalid.
  var orientation: PhotoOrientation? {
    guard let entry = entries([0x0112], in: main)[0x0112], entry.type == 3 else { return nil }
    return PhotoOrientation(entry.short)
  }

  struct Entry {
    let type: Int
    let count: Int64
    /// The four bytes of the value field, which is the value or its offset; and the first two of them alone.
    let value: Int64
    let short: Int
  }

  private func date(_ entry: Entry) -> CaptureDate? {
    guard entry.type == 2, (19...64).contains(entry.count) else { return nil }
    return CaptureDate(exif: bytes(entry.value, 19))
  }

  /// The offset of the directory after this one; nil: it is the last one. TIFF 6.0 §2, "Image File Directory".
  func next(after directory: Int64) -> Int64? {
    let count = value(bytes(directory, 2)[...])
    let next = value(bytes(directory + 2 + count * 12, 4)[...])
    return next == 0 || next == directory ? nil : next
  }

  /// The first entry of each of the given tags.
  func entries(_ tags: Set<Int>, in directory: Int64) -> [Int: Entry] {
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

  /// Decodes at most four bytes.
  private func value(_ bytes: ArraySlice<UInt8>) -> Int64 {
    Int64(isLittleEndian ? number(bytes.reversed()) : number(bytes))
  }
}
