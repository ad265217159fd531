import Blobs

/// The small JPEG that cameras put into a photo's EXIF metadata. Nothing is decoded.
public enum PhotoPreview {
  /// The most bytes of a preview. EXIF metadata of a JPEG has no room for more.
  public static let mostBytes = 64 << 10

  /// The preview in a JPEG, HEIC, AVIF or RAW file, given the first bytes of the file; nil if there is none among them. It
  /// has the photo's orientation. At most `mostBytes` long.
  public static func jpeg(inStart bytes: [UInt8]) -> [UInt8]? {
    // A validator of its own saves the digest of all bytes.
    let source = DataSource(bytes, validator: Validator(version: "start"))
    let file = PictureFile(RandomAccessBytes(source, Cancellation()))
    for block in file.exifBlocks {
      guard let directory = TIFFDirectory(file.bytes, in: block),
        let preview = directory.preview(atMost: mostBytes - 64)
      else { continue }
      return turned(preview, as: directory.orientation ?? .upright)
    }
    return nil
  }

  /// Adds the orientation as EXIF metadata after the JPEG's start marker. Exif 2.32 §4.5.4.
  private static func turned(_ jpeg: [UInt8], as orientation: PhotoOrientation) -> [UInt8] {
    if orientation == .upright { return jpeg }
    var block = Array("Exif\0\0MM".utf8) + [0, 42, 0, 0, 0, 8]
    block += [0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(orientation.number), 0, 0, 0, 0, 0, 0]
    return Array(jpeg.prefix(2)) + [0xFF, 0xE1, 0, UInt8(block.count + 2)] + block + Array(jpeg.dropFirst(2))
  }
}

extension TIFFDirectory {
  /// The JPEG to which the second directory, that of the preview, refers, or else the first one, as in some RAW formats;
  /// nil if there is none or if it is longer. Exif 2.32 §4.5.2.
  func preview(atMost most: Int) -> [UInt8]? {
    for directory in [next(after: main), main] {
      guard let directory else { continue }
      let found = entries([0x0201, 0x0202], in: directory)
      guard let start = found[0x0201]?.value, let count = found[0x0202]?.value, (4...Int64(most)).contains(count) else {
        continue
      }
      let jpeg = bytes(start, Int(count))
      // A preview that was cut off, or is no JPEG, is none.
      if jpeg.count == count, jpeg.starts(with: [0xFF, 0xD8, 0xFF]) { return jpeg }
    }
    return nil
  }
}
