/// The section directory at the end of a Sigma camera's X3F file. Foveon X3F format, as published by Sigma.
struct SigmaFile {
  private let bytes: RandomAccessBytes
  private var sections: [(kind: [UInt8], range: Range<Int64>)] = []

  init?(_ bytes: RandomAccessBytes) {
    self.bytes = bytes
    guard let directory = bytes.little(bytes.end - 4, 4), bytes.holds("SECd", at: directory),
      let count = bytes.little(directory + 8, 4)
    else { return nil }
    for index in 0..<min(count, 64) {
      let entry = directory + 12 + index * 12
      guard let start = bytes.little(entry, 4), let size = bytes.little(entry + 4, 4), let kind = bytes(entry + 8, 4)
      else { return nil }
      let end = min(start + size, bytes.end)
      if start < end { sections.append((kind, start..<end)) }
    }
  }

  /// The Exif block of the preview JPEG.
  var exif: Range<Int64>? {
    for (kind, range) in sections where kind.elementsEqual("IMA2".utf8) || kind.elementsEqual("IMAG".utf8) {
      // Image format 18 is JPEG; the data follows a header of 28 bytes.
      guard bytes.holds("SECi", at: range.lowerBound), bytes.little(range.lowerBound + 12, 4) == 18,
        range.lowerBound + 28 < range.upperBound
      else { continue }
      if let block = exifOfJPEG(in: bytes, (range.lowerBound + 28)..<range.upperBound) { return block }
    }
    return nil
  }

  /// The date in the property list, which consists of pairs of UTF-16 strings.
  var date: CaptureDate? {
    for (kind, range) in sections where kind.elementsEqual("PROP".utf8) {
      guard bytes.holds("SECp", at: range.lowerBound), let count = bytes.little(range.lowerBound + 8, 4),
        let table = bytes(range.lowerBound + 24, Int(min(count, 512)) * 8)
      else { continue }
      let texts = range.lowerBound + 24 + count * 8
      for entry in stride(from: 0, through: table.count - 8, by: 8) {
        let name = texts + Int64(number(table[entry..<entry + 4].reversed())) * 2
        let value = texts + Int64(number(table[entry + 4..<entry + 8].reversed())) * 2
        if text(at: name) == "TIME" { return Int64(text(at: value)).flatMap { CaptureDate(secondsOfCamera: $0) } }
      }
    }
    return nil
  }

  /// Reads a NUL-terminated string, or its first 16 UTF-16 units.
  private func text(at place: Int64) -> String {
    let bytes = bytes(place, 32) ?? []
    let units = stride(from: 0, to: bytes.count - 1, by: 2).map { UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8 }
    return String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
  }
}

/// The date in a CRW file of an old Canon camera. Canon, "CIFF: Specification on Image Data File".
///
/// The file consists of nested heaps, each with a directory at its end.
func dateOfCIFF(in bytes: RandomAccessBytes) -> CaptureDate? {
  guard let start = bytes.little(2, 4), start < bytes.end else { return nil }
  var heaps = [start..<bytes.end]
  var index = 0
  while index < heaps.count {
    let heap = heaps[index]
    index += 1
    guard let offset = bytes.little(heap.upperBound - 4, 4), case let directory = heap.lowerBound + offset,
      let count = bytes.little(directory, 2)
    else { continue }
    for entry in 0..<min(count, 256) {
      let place = directory + 2 + entry * 10
      guard let tag = bytes.little(place, 2), let size = bytes.little(place + 2, 4),
        let from = bytes.little(place + 6, 4)
      else { break }
      let content = heap.lowerBound + from
      if tag == 0x180E, let seconds = bytes.little(content, 4) { return CaptureDate(secondsOfCamera: seconds) }
      // The tags of heaps have these bits. A nested heap lies within its parent, so it must be smaller.
      let isHeap = tag & 0x3800 == 0x2800 || tag & 0x3800 == 0x3000
      if isHeap, tag & 0xC000 == 0, size > 6, content + size < heap.upperBound, heaps.count < 32 {
        heaps.append(content..<(content + size))
      }
    }
  }
  return nil
}
