import Blobs

/// Bytes of a source by their place, a few at a time, for readers of formats that lead from place to place.
struct BytesAt {
  let source: any BlobSource
  let cancel: Cancellation

  /// As many of `count` bytes as there are; nil when they cannot be had.
  func callAsFunction(_ offset: Int64, _ count: Int) -> [UInt8]? {
    // A picture whose date cannot be read has its file's time: no reason to fail.
    guard offset >= 0, count > 0, let reader = try? source.open(at: offset, cancel) else { return nil }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = 0
      while filled < count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count])
        guard let read = try? reader.read(into: rest), read > 0 else { return }
        filled += read
      }
    }
  }
}

/// The boxes of HEIC, AVIF, MP4 and QuickTime files, found by their kinds. It trusts no size in there.
/// ISO/IEC 14496-12 §4.2.
struct BoxFile {
  struct Box {
    let kind: [UInt8]
    /// Of what is inside.
    let start: Int64
    let end: Int64
  }

  private static let mostBoxes = 256
  let bytes: BytesAt

  /// The first box of a kind between two places.
  func box(_ kind: String, in range: Range<Int64>) -> Box? {
    let wanted = Array(kind.utf8)
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

/// Big-endian, eight bytes at most.
func number(_ bytes: some Sequence<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
