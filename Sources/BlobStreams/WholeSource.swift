import Blobs

/// What a stream reads: all of its source to the end, held to the length and the version that it began with, and found
/// again a bounded number of times when it is lost.
struct WholeSource: BlobSource {
  let source: any BlobSource

  var access: BlobAccess { source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try source.info(cancel) }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try BlobSlice(ReopeningSource(source), start: offset).open(cancel)
  }
}
