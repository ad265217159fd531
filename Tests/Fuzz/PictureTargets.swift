import Blobs

@testable import BlobMedia

/// The head of a picture or a film: JPEG, TIFF, HEIF and QuickTime, with their EXIF.
func fuzzPictures(_ data: UnsafeRawBufferPointer) {
  let bytes = Array(data)
  let source = DataSource(bytes)
  _ = CaptureDate.read(from: source)
  let orientation = PhotoOrientation.read(from: source)
  _ = orientation.isThatOfBoxes(in: source)
  _ = PhotoOrientation.read(fromTIFF: bytes[...])
  _ = TIFFDirectory.captureDate(in: bytes[...])
  _ = GalleryName(BytePath(bytes))
}

/// What editors leave beside a picture: XMP packets and Apple's property lists.
func fuzzSidecars(_ data: UnsafeRawBufferPointer) {
  _ = Sidecar(Array(data), besidePhoto: "CR2")
}
