import Blobs

extension BoxFile {
  /// The range of the Exif block in a HEIC or AVIF file. ISO/IEC 23008-12 §A.2.1, 14496-12 §8.11.
  func exif(upTo end: Int64) -> Range<Int64>? {
    guard let meta = box("meta", in: 0..<end) else { return nil }
    // In a full box, version and flags precede the content.
    let inside = (meta.start + 4)..<max(meta.end, meta.start + 4)
    guard let infos = box("iinf", in: inside), let item = exifItem(infos), let places = box("iloc", in: inside),
      let found = place(of: item, in: places), found.lowerBound >= 0, found.upperBound <= end
    else { return nil }
    // The first four bytes are the offset of the TIFF block from their end.
    guard let head = bytes(found.lowerBound, 4), head.count == 4 else { return nil }
    let start = found.lowerBound + 4 + Int64(number(head))
    return start < found.upperBound ? start..<found.upperBound : nil
  }

  private func exifItem(_ infos: Box) -> UInt64? {
    guard let head = bytes(infos.start, 8), head.count == 8 else { return nil }
    var place = infos.start + (head[0] == 0 ? 6 : 8)
    for _ in 0..<1024 {
      guard place < infos.end, let info = box(at: place, before: infos.end) else { return nil }
      place = info.end
      guard info.kind == Array("infe".utf8), let entry = bytes(info.start, 14), entry.count >= 12 else { continue }
      // Item IDs have two bytes in version 2 and four bytes in version 3.
      let width = entry[0] == 2 ? 2 : 4
      guard entry[0] >= 2, entry.count >= 10 + width else { continue }
      if entry[(6 + width)..<(10 + width)].elementsEqual("Exif".utf8) { return number(entry[4..<(4 + width)]) }
    }
    return nil
  }

  private func place(of item: UInt64, in box: Box) -> Range<Int64>? {
    guard let table = bytes(box.start, Int(min(box.end - box.start, 64 << 10))), table.count > 8 else { return nil }
    var rest = Fields(table)
    let version = rest.take(1)
    _ = rest.take(3)
    let sizes = rest.take(2)
    let (offsetSize, lengthSize) = (Int(sizes >> 12 & 15), Int(sizes >> 8 & 15))
    let (baseSize, indexSize) = (Int(sizes >> 4 & 15), version > 0 ? Int(sizes & 15) : 0)
    let count = rest.take(version < 2 ? 2 : 4)
    for _ in 0..<min(count, 4096) where !rest.isOver {
      let id = rest.take(version < 2 ? 2 : 4)
      let method = version > 0 ? rest.take(2) & 15 : 0
      _ = rest.take(2)
      let base = rest.take(baseSize)
      let extents = rest.take(2)
      for extent in 0..<extents where !rest.isOver {
        _ = rest.take(indexSize)
        let (offset, length) = (rest.take(offsetSize), rest.take(lengthSize))
        // With method 0 the offsets count from the start of the file. An Exif block is small, so only one extent is
        // supported.
        if id == item, extent == 0, method == 0, !rest.isOver {
          let (start, overflow) = base.addingReportingOverflow(offset)
          guard !overflow, start < 1 << 62, length < 1 << 32 else { return nil }
          return Int64(start)..<Int64(start + length)
        }
      }
    }
    return nil
  }
}

extension BoxFile {
  /// The Exif block of a JPEG XL file. Compressed metadata (`brob`) is not supported. ISO/IEC 18181-2 §9.5.
  func exifOfJXL(upTo end: Int64) -> Range<Int64>? {
    guard let box = box("Exif", in: 0..<end), let skipped = bytes.big(box.start, 4) else { return nil }
    let start = box.start + 4 + skipped
    return start < box.end ? start..<box.end : nil
  }

  /// The TIFF blocks of a CR3 file: the Exif directory and the main one. They are in a `uuid` box of Canon's own
  /// format.
  func canonBlocks(upTo end: Int64) -> [Range<Int64>] {
    guard let movie = box("moov", in: 0..<end), let own = box("uuid", in: movie.start..<movie.end),
      bytes(own.start, 16) == Self.canon, own.end > own.start + 16
    else { return [] }
    let inside = (own.start + 16)..<own.end
    return ["CMT2", "CMT1"].compactMap { box($0, in: inside) }.map { $0.start..<$0.end }
  }

  private static let canon: [UInt8] = [
    0x85, 0xC0, 0xB6, 0x87, 0x82, 0x0F, 0x11, 0xE0, 0x81, 0x11, 0xF4, 0xCE, 0x46, 0x2B, 0x6A, 0x48,
  ]

  /// Seconds since 1970 from a film's `mvhd` box; nil if the camera did not set it. ISO/IEC 14496-12 §8.2.2.
  func filmed(upTo end: Int64) -> Int64? {
    guard let movie = box("moov", in: 0..<end), let head = box("mvhd", in: movie.start..<movie.end),
      let fields = bytes(head.start, 12), fields.count == 12
    else { return nil }
    let since1904 = fields[0] == 1 ? number(fields[4...]) : number(fields[4..<8])
    let between: UInt64 = 2_082_844_800
    return since1904 > between && since1904 < 1 << 40 ? Int64(since1904 - between) : nil
  }
}

/// Reads consecutive big-endian numbers; returns 0 beyond the end.
private struct Fields {
  private var rest: ArraySlice<UInt8>
  private(set) var isOver = false

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  mutating func take(_ count: Int) -> UInt64 {
    if rest.count < count || count > 8 {
      isOver = true
      return 0
    }
    defer { rest = rest.dropFirst(count) }
    return number(rest.prefix(count))
  }
}
