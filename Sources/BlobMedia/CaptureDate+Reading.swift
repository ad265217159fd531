import Blobs

extension CaptureDate {
  /// What a file says of itself, by the clock of its camera: EXIF in JPEG, HEIC, AVIF, JPEG XL, PNG, WebP, Photoshop's
  /// files and RAW formats, and what AVI films, AVCHD and old RAW formats have in its place. Of other films the metadata
  /// of Apple and Sony; where there is none, the head, which counts in UTC and is taken by this machine's clock. nil where
  /// the file says nothing.
  ///
  /// Reads a bounded number of bytes, whatever the file claims, and blocks.
  public static func read(from source: any BlobSource, _ cancel: Cancellation = Cancellation()) -> CaptureDate? {
    let file = PictureFile(BytesAt(source, cancel))
    for block in file.exifBlocks {
      if let date = TIFFDirectory(file.bytes, in: block)?.captureDate { return date }
    }
    return file.ownDate
  }
}
