import Blobs

extension PhotoOrientation {
  /// Whether the rotation boxes of a HEIC file match this orientation, which is the one in its EXIF data. Only then is
  /// the relation between decoded and stored pixels known. Reads a bounded number of bytes, and blocks.
  public func isThatOfBoxes(in source: any BlobSource, _ cancel: Cancellation = Cancellation()) -> Bool {
    let bytes = RandomAccessBytes(source, cancel)
    guard let turns = BoxFile(bytes: bytes).turns(upTo: bytes.end) else { return false }
    // The boxes count quarter turns counterclockwise. Mirrored pictures are excluded, because programs describe them in
    // different ways.
    let quarters = [1: 0, 3: 2, 6: 3, 8: 1][number]
    return !turns.isMirrored && (turns.quarters.isEmpty ? [0] : turns.quarters) == [quarters]
  }
}

extension BoxFile {
  /// The rotation and mirror properties of a file's pictures; nil if there are no properties. ISO/IEC 23008-12 §6.5.10,
  /// 6.5.12.
  fileprivate func turns(upTo end: Int64) -> (quarters: Set<Int>, isMirrored: Bool)? {
    guard let meta = box("meta", in: 0..<end), meta.end >= meta.start + 4,
      let properties = box("iprp", in: (meta.start + 4)..<meta.end),
      let list = box("ipco", in: properties.start..<properties.end)
    else { return nil }
    var (quarters, isMirrored): (Set<Int>, Bool) = ([], false)
    var place = list.start
    for _ in 0..<4096 {
      guard place < list.end else { return (quarters, isMirrored) }
      guard let property = box(at: place, before: list.end) else { return nil }
      if property.kind.elementsEqual("imir".utf8) { isMirrored = true }
      if property.kind.elementsEqual("irot".utf8) {
        guard let angle = bytes(property.start, 1)?.first else { return nil }
        quarters.insert(Int(angle & 3))
      }
      place = property.end
    }
    return nil
  }
}
