/// Parses the chunks of a WebP picture or an AVI film. Validates every size field. Microsoft, "Multimedia Programming
/// Interface and Data Specifications 1.0", RIFF.
struct RIFFFile {
  private static let mostChunks = 4096
  let bytes: RandomAccessBytes

  /// The Exif block of a WebP picture. Some programs begin it with the prefix of a JPEG segment. RFC 9649 §2.7.1.5.
  var exif: Range<Int64>? {
    guard let found = chunk("EXIF", in: 12..<bytes.end) else { return nil }
    let start = bytes.holds("Exif\0\0", at: found.lowerBound) ? found.lowerBound + 6 : found.lowerBound
    return start < found.upperBound ? start..<found.upperBound : nil
  }

  /// The date that a camera has written into the header of a film or its `INFO` list.
  var dateOfAVI: CaptureDate? {
    var place: Int64 = 12
    for _ in 0..<Self.mostChunks {
      guard let chunk = chunk(at: place, before: bytes.end) else { return nil }
      place = chunk.next
      guard chunk.kind.elementsEqual("LIST".utf8), let kind = bytes(chunk.start, 4), chunk.start + 4 < chunk.end else {
        continue
      }
      let inside = (chunk.start + 4)..<chunk.end
      if let date = date(inList: String(decoding: kind, as: UTF8.self), inside) { return date }
    }
    return nil
  }

  private func date(inList kind: String, _ inside: Range<Int64>) -> CaptureDate? {
    switch kind {
    case "hdrl": return date(inChunk: "IDIT", inside)
    case "INFO": return date(inChunk: "IDIT", inside) ?? date(inChunk: "ICRD", inside)
    case "ncdt": return chunk("nctg", in: inside).flatMap { dateOfNikon(in: $0) }
    default: return nil
    }
  }

  private func date(inChunk kind: String, _ inside: Range<Int64>) -> CaptureDate? {
    guard let found = chunk(kind, in: inside), let text = bytes(found.lowerBound, Int(min(64, found.count))) else {
      return nil
    }
    return CaptureDate(film: text)
  }

  /// Reads Nikon's list of tags: a tag and a length of two bytes each, then the value. Tag 19 is the date.
  private func dateOfNikon(in range: Range<Int64>) -> CaptureDate? {
    var place = range.lowerBound
    for _ in 0..<256 where place < range.upperBound {
      guard let tag = bytes.little(place, 2), let count = bytes.little(place + 2, 2) else { return nil }
      if tag == 19, let text = bytes(place + 4, Int(min(count, 64))) { return CaptureDate(film: text) }
      place += 4 + count
    }
    return nil
  }

  private func chunk(_ kind: String, in range: Range<Int64>) -> Range<Int64>? {
    var place = range.lowerBound
    for _ in 0..<Self.mostChunks {
      guard let chunk = chunk(at: place, before: range.upperBound) else { return nil }
      if chunk.kind.elementsEqual(kind.utf8) { return chunk.start < chunk.end ? chunk.start..<chunk.end : nil }
      place = chunk.next
    }
    return nil
  }

  /// `end` is the end of the content; `next` is the even offset at which the next chunk begins.
  private func chunk(at place: Int64, before end: Int64) -> (kind: [UInt8], start: Int64, end: Int64, next: Int64)? {
    guard place >= 0, place < end, let head = bytes(place, 8), head.count == 8 else { return nil }
    let start = place + 8
    let size = Int64(number(head[4...].reversed()))
    return (Array(head[..<4]), start, min(start + size, max(start, end)), start + size + size % 2)
  }
}

extension CaptureDate {
  /// Parses the forms that cameras write into AVI films: `Tue Jan  2 03:04:05 2024`, `2024/01/02 03:04:05`,
  /// `2024-01-02`, `2001/ 1/27  1:42PM`.
  init?(film text: [UInt8]) {
    let text = String(decoding: text.prefix { $0 != 0 }, as: UTF8.self).uppercased()
    let words = text.split { $0.isWhitespace }
    if words.count >= 5, let month = Self.months.firstIndex(where: { words[1].hasPrefix($0) }) {
      let time = words[3].split(separator: ":").compactMap { Self.number($0) }
      guard time.count == 3, let day = Self.number(words[2]), let year = Self.number(words[4]) else { return nil }
      self.init(checked: year, month + 1, day, time[0], time[1], time[2])
      return
    }
    var numbers = text.split { !("0"..."9").contains($0) }.compactMap { Self.number($0) }
    guard numbers.count >= 3 else { return nil }
    numbers += [0, 0, 0]
    var hour = numbers[3]
    if text.contains("PM"), hour < 12 { hour += 12 } else if text.contains("AM"), hour == 12 { hour = 0 }
    self.init(checked: numbers[0], numbers[1], numbers[2], hour, numbers[4], numbers[5])
  }

  private static let months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]

  private static func number(_ text: Substring) -> Int? { text.utf8.count <= 4 ? Int(text) : nil }
}
