import BlobMedia

/// The TIFF block of EXIF data, edited in place, so that offsets in maker notes stay valid. Validates every number.
struct ExifBlock {
  private(set) var bytes: [UInt8]
  private let isLittleEndian: Bool

  /// nil if `bytes` are not a TIFF block.
  init?(_ bytes: [UInt8]) {
    guard bytes.count >= 8, bytes.starts(with: "II*\0".utf8) || bytes.starts(with: "MM\0*".utf8) else { return nil }
    self.bytes = bytes
    isLittleEndian = bytes[0] == UInt8(ascii: "I")
  }

  var orientation: PhotoOrientation { PhotoOrientation.read(fromTIFF: bytes[...]) }

  /// Updates orientation and size for an upright rendering, and removes the embedded thumbnail, which shows the
  /// unedited picture.
  mutating func describe(width: Int, height: Int) {
    guard let main = number(4, 4) else { return }
    set(0x0112, in: main, to: 1)
    set(0x0100, in: main, to: width)
    set(0x0101, in: main, to: height)
    if let pointer = entry(0x8769, in: main), let exif = number(pointer + 8, 4) {
      set(0xA002, in: exif, to: width)
      set(0xA003, in: exif, to: height)
    }
    dropSmallPicture(after: main)
  }

  /// Overwrites the thumbnail's pixels too, because they may show parts that were cropped.
  private mutating func dropSmallPicture(after main: Int) {
    guard let count = number(main, 2), case let link = main + 2 + count * 12, let second = number(link, 4), second > 0
    else { return }
    if let start = entry(0x0201, in: second).flatMap({ number($0 + 8, 4) }),
      let length = entry(0x0202, in: second).flatMap({ number($0 + 8, 4) }), start >= 8, start <= bytes.count
    {
      for place in start..<min(bytes.count, start + length) { bytes[place] = 0 }
    }
    put(0, at: link, 4)
  }

  private func entry(_ tag: Int, in directory: Int) -> Int? {
    guard let count = number(directory, 2) else { return nil }
    return (0..<min(count, 512)).map { directory + 2 + $0 * 12 }.first { number($0, 2) == tag }
  }

  /// Sets a single number of two or four bytes. A missing tag is not added.
  private mutating func set(_ tag: Int, in directory: Int, to value: Int) {
    guard let entry = entry(tag, in: directory), number(entry + 4, 4) == 1 else { return }
    switch number(entry + 2, 2) {
    case 3: put(value, at: entry + 8, 2)
    case 4: put(value, at: entry + 8, 4)
    default: break
    }
  }

  private func number(_ place: Int, _ count: Int) -> Int? {
    guard place >= 0, place <= bytes.count - count else { return nil }
    let slice = bytes[place..<(place + count)]
    return isLittleEndian
      ? slice.reversed().reduce(0) { $0 << 8 | Int($1) } : slice.reduce(0) { $0 << 8 | Int($1) }
  }

  private mutating func put(_ value: Int, at place: Int, _ count: Int) {
    guard place >= 0, place <= bytes.count - count else { return }
    for index in 0..<count {
      let shift = 8 * (isLittleEndian ? index : count - 1 - index)
      bytes[place + index] = UInt8(truncatingIfNeeded: value >> shift)
    }
  }
}
