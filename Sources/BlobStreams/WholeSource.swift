import Blobs

/// The bytes of a stream: all of its source to the end, checked against the length and version found at the start. If a
/// reader is invalidated, the source is reopened a bounded number of times.
struct WholeSource: BlobSource {
  let source: any BlobSource

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try BlobSlice(ReopeningSource(source), start: offset).open(cancel)
  }
}
