import BlobStreams
import Blobs
import Foundation

#if canImport(Photos)
  import BlobApple
  import BlobMedia

  /// The photo or film of an asset as the user sees it. `asset` is the `localIdentifier` of a `PHAsset`. It blocks.
  func photo(_ asset: String) throws -> any BlobSource {
    let items = try PhotoGallery(assets: [asset], edits: .current).next()
    let edited = items.first { [.editedPhoto, .editedVideo].contains($0.resource.kind) }
    guard let item = edited ?? items.first else { throw BlobError(.notFound, "there is no asset \(asset)") }
    // Where a download from iCloud breaks off, it goes on at the same byte.
    return ReopeningSource(item.source)
  }
#endif

/// The streams of `NSInputStream (POS)`, over a photo or any other source.
func streams(of photo: any BlobSource) -> [BlobInputStream] {
  // pos_inputStreamWithAssetURL:
  let evented = BlobInputStream(photo, asynchronous: true)
  // pos_inputStreamWithAssetURL:asynchronous: with NO
  let blocking = BlobInputStream(photo)
  // pos_inputStreamForCFNetworkWithAssetURL:
  let body = BlobInputStream.forURLLoading(photo)
  // pos_inputStreamForAFNetworkingWithAssetURL:
  let part = BlobInputStream.forMultipart(photo)
  return [evented, blocking, body, part]
}

/// `POSBlobInputStream` itself.
func streamsOfAnySource(_ source: any BlobSource) -> [BlobInputStream] {
  // initWithDataSource:
  let stream = BlobInputStream(source)
  // shouldNotifyCoreFoundationAboutStatusChange, which was NO unless it was set
  stream.reportsErrorsToURLLoading = false
  // openDispatchQueue: at most two threads on which the streams of forms open
  let threads = StreamThreads(2)
  let part = BlobInputStream.forMultipart(source, openingOn: threads)
  // sharedOpenDispatchQueue
  let shared = BlobInputStream.forMultipart(source, openingOn: .opening)
  return [stream, part, shared]
}

/// `NSStreamFileCurrentOffsetKey`, before and after `open`.
func read(_ stream: BlobInputStream, from offset: Int64) throws -> [UInt8] {
  guard stream.setProperty(NSNumber(value: offset), forKey: .fileCurrentOffsetKey) else {
    throw BlobError(.unsupported, "the stream cannot begin at byte \(offset)")
  }
  if stream.streamStatus == .notOpen { stream.open() }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 64 << 10)
  while true {
    let count = stream.read(&buffer, maxLength: buffer.count)
    if count == 0 { return bytes }
    if count < 0 { throw reason(of: stream) }
    bytes += buffer[..<count]
  }
}

/// `POSBlobInputStreamErrorDomain` and its kin.
func reason(of stream: BlobInputStream) -> BlobError {
  // The error of the source, as the source has thrown it
  if let error = BlobError(underlying: stream.streamError) { return error }
  return BlobError(.io, "the stream failed: \(stream.streamStatus)")
}
