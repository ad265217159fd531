/// The TIFF block in the APP1 segment of a JPEG. ITU T.81 Annex B; Exif 2.32 §4.7.2.
func exifOfJPEG(in bytes: RandomAccessBytes, _ range: Range<Int64>) -> Range<Int64>? {
  guard bytes(range.lowerBound, 2) == [0xFF, 0xD8] else { return nil }
  let mark = Array("Exif\0\0".utf8)
  var place = range.lowerBound + 2
  for _ in 0..<512 {
    guard place < range.upperBound, let head = bytes(place, 10), head.count >= 4, head[0] == 0xFF else { return nil }
    // Skip fill bytes.
    if head[1] == 0xFF {
      place += 1
      continue
    }
    // The image data begins here, and all metadata segments precede it.
    if head[1] == 0xDA || head[1] == 0xD9 { return nil }
    let next = place + 2 + Int64(head[2]) << 8 + Int64(head[3])
    guard next >= place + 4 else { return nil }
    if head[1] == 0xE1, head[4...].elementsEqual(mark) {
      let end = min(next, range.upperBound)
      return place + 10 < end ? (place + 10)..<end : nil
    }
    place = next
  }
  return nil
}

/// The TIFF block in the `eXIf` chunk of a PNG file. PNG (Third Edition) §5.3, §11.3.3.6.
func exifOfPNG(in bytes: RandomAccessBytes) -> Range<Int64>? {
  var place: Int64 = 8
  // A picture of 20 MB may have 2,500 chunks of 8 KiB before the `eXIf` chunk.
  for _ in 0..<8000 {
    guard let head = bytes(place, 8), head.count == 8 else { return nil }
    let start = place + 8
    let end = start + Int64(number(head[..<4]))
    guard end <= bytes.end else { return nil }
    if head[4...].elementsEqual("eXIf".utf8) { return start..<end }
    place = end + 4
  }
  return nil
}

/// The Exif data in image resource 1058 of a Photoshop file. Adobe Photoshop File Formats Specification, "Image
/// Resources Section".
func exifOfPhotoshop(in bytes: RandomAccessBytes) -> Range<Int64>? {
  guard let colours = bytes.big(26, 4), let count = bytes.big(30 + colours, 4) else { return nil }
  var place = 34 + colours
  let end = min(place + count, bytes.end)
  for _ in 0..<1024 {
    // A resource has a signature, an ID, a length-prefixed name padded to an even length, and the length of its
    // content.
    guard place < end, bytes.holds("8BIM", at: place), let id = bytes.big(place + 4, 2),
      let name = bytes.big(place + 6, 1)
    else { return nil }
    let start = place + 6 + (name + 2) / 2 * 2
    guard let size = bytes.big(start, 4) else { return nil }
    if id == 1058 { return start + 4 < min(start + 4 + size, end) ? (start + 4)..<min(start + 4 + size, end) : nil }
    place = start + 4 + (size + 1) / 2 * 2
  }
  return nil
}
