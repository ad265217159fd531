/// Finds the boxes of HEIC, AVIF, MP4 and QuickTime files by their type. Validates every size field. ISO/IEC 14496-12
/// §4.2.
struct BoxFile {
  struct Box {
    let kind: [UInt8]
    /// Offset of the content; the box header precedes it.
    let start: Int64
    let end: Int64
  }

  private static let mostBoxes = 256
  let bytes: RandomAccessBytes

  /// The first box of type `kind` within a range of offsets.
  func box(_ kind: String, in range: Range<Int64>) -> Box? { box(kind: Array(kind.utf8), in: range) }

  /// The same for a type that is not ASCII text.
  func box(kind wanted: [UInt8], in range: Range<Int64>) -> Box? {
    var place = range.lowerBound
    for _ in 0..<Self.mostBoxes {
      guard place < range.upperBound, let box = box(at: place, before: range.upperBound) else { return nil }
      if box.kind == wanted { return box }
      place = box.end
    }
    return nil
  }

  func box(at place: Int64, before end: Int64) -> Box? {
    guard let head = bytes(place, 16), head.count >= 8 else { return nil }
    let kind = Array(head[4..<8])
    var (size, header) = (Int64(number(head[..<4])), Int64(8))
    if size == 1, head.count == 16 {
      (size, header) = (Int64(truncatingIfNeeded: number(head[8...])), 16)
    } else if size == 0 {
      size = end - place
    }
    guard size >= header, size <= end - place else { return nil }
    return Box(kind: kind, start: place + header, end: place + size)
  }
}
