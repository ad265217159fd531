import Blobs

extension CaptureDate {
  /// Reads the capture date from a file's metadata, in the local time of its camera. Sources are EXIF in JPEG, HEIC,
  /// AVIF, JPEG XL, PNG, WebP, Photoshop and RAW formats, and the equivalents in AVI films, AVCHD and old RAW formats.
  /// For other films these are the metadata of Apple and Sony. Without them, the UTC time in the film's header is
  /// converted to this machine's time zone. nil if the file contains no date.
  ///
  /// Blocks, and reads a bounded number of bytes.
  public static func read(from source: any BlobSource, _ cancel: Cancellation = Cancellation()) -> CaptureDate? {
    let file = PictureFile(RandomAccessBytes(source, cancel))
    for block in file.exifBlocks {
      if let date = TIFFDirectory(file.bytes, in: block)?.captureDate { return date }
    }
    return file.ownDate
  }
}
