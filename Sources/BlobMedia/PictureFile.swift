import Blobs

/// Detects the format of a picture or film from its first bytes, and locates its capture date.
struct PictureFile {
  enum Format {
    case jpeg, tiff, boxes, jxl, png, webp, avi, photoshop, fujifilm, sigma, ciff, transportStream
  }

  let bytes: RandomAccessBytes
  /// nil if the format is unknown.
  let format: Format?

  init(_ bytes: RandomAccessBytes) {
    self.bytes = bytes
    format = Self.format(of: bytes(0, 200) ?? [], bytes)
  }

  private static func format(of head: [UInt8], _ bytes: RandomAccessBytes) -> Format? {
    func holds(_ text: String, _ place: Int = 0) -> Bool { head.dropFirst(place).starts(with: text.utf8) }
    if head.starts(with: [0xFF, 0xD8]) { return .jpeg }
    if holds("II"), holds("HEAPCCDR", 6) { return .ciff }
    if holds("II") || holds("MM") { return .tiff }
    if holds("JXL ", 4) { return .jxl }
    if boxes.contains(where: { holds($0, 4) }) { return .boxes }
    if head.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .png }
    if holds("RIFF"), holds("WEBP", 8) { return .webp }
    if holds("RIFF"), holds("AVI ", 8) { return .avi }
    if holds("8BPS") { return .photoshop }
    if holds("FUJIFILMCCD-RAW") { return .fujifilm }
    if holds("FOVb") { return .sigma }
    return TransportStream(bytes) == nil ? nil : .transportStream
  }

  /// Types of the first box in a HEIC file or a film.
  private static let boxes = ["ftyp", "moov", "mdat", "wide", "free", "skip"]

  /// The TIFF blocks with EXIF data, best first.
  var exifBlocks: [Range<Int64>] {
    let end = bytes.end
    let block: Range<Int64>?
    switch format {
    case .tiff: block = 0..<end
    case .jpeg: block = exifOfJPEG(in: bytes, 0..<end)
    case .jxl: block = BoxFile(bytes: bytes).exifOfJXL(upTo: end)
    case .boxes:
      let boxes = BoxFile(bytes: bytes)
      guard let exif = boxes.exif(upTo: end) else { return boxes.canonBlocks(upTo: end) }
      block = exif
    case .png: block = exifOfPNG(in: bytes)
    case .webp: block = RIFFFile(bytes: bytes).exif
    case .photoshop: block = exifOfPhotoshop(in: bytes)
    case .fujifilm:
      guard let start = bytes.big(84, 4), let count = bytes.big(88, 4) else { return [] }
      block = exifOfJPEG(in: bytes, start..<min(start + count, max(start, end)))
    case .sigma: block = SigmaFile(bytes)?.exif
    case .avi, .ciff, .transportStream, nil: block = nil
    }
    return block.map { [$0] } ?? []
  }

  /// The date in metadata other than EXIF.
  var ownDate: CaptureDate? {
    switch format {
    case .boxes: BoxFile(bytes: bytes).dateOfFilm
    case .avi: RIFFFile(bytes: bytes).dateOfAVI
    case .sigma: SigmaFile(bytes)?.date
    case .ciff: dateOfCIFF(in: bytes)
    case .transportStream: TransportStream(bytes)?.date
    default: nil
    }
  }
}
