import Blobs

@testable import BlobMedia

/// A picture or a film of any format that a date or an orientation is read from.
func fuzzPictures(_ data: UnsafeRawBufferPointer) {
  let bytes = Array(data)
  let source = DataSource(bytes)
  _ = CaptureDate.read(from: source)
  let orientation = PhotoOrientation.read(from: source)
  _ = orientation.isThatOfBoxes(in: source)
  _ = PhotoOrientation.read(fromTIFF: bytes[...])
  let preview = PhotoPreview.jpeg(inStart: bytes)
  precondition(preview?.count ?? 0 <= PhotoPreview.mostBytes)
  _ = GalleryName(BytePath(bytes))
}

/// What editors leave beside a picture: XMP packets and Apple's property lists.
func fuzzSidecars(_ data: UnsafeRawBufferPointer) {
  _ = Sidecar(Array(data), besidePhoto: "CR2")
}
