import BlobCrypto
import BlobHTTP
import BlobServer
import BlobUpload
import Blobs

/// An object, to be read in ranges.
struct S3Content: RemoteContent {
  let bucket: S3Bucket
  let url: HTTPURL
  let tag: String

  func start(_ range: Range<Int64>) -> ContentFeed {
    let feed = ContentFeed()
    Task { [bucket, url, tag] in
      do throws(UploadError) {
        try await bucket.s3.read(url, range, of: tag, bucket.context) { bytes throws(BlobError) in
          if !feed.write(bytes) { throw BlobError(.cancelled, "the client has gone") }
        }
        feed.finish(isWhole: true)
      } catch {
        feed.finish(isWhole: false)
      }
    }
    return feed
  }

  /// Blocks until `take` has got all bytes of the range.
  func read(
    _ range: Range<Int64>, _ take: ([UInt8]) throws(ServerError) -> Void
  ) throws(ServerError) {
    let feed = start(range)
    defer { feed.stop() }
    while true {
      switch feed.waitForNext() {
      case .bytes(let bytes): try take(bytes)
      case .end: return
      case .failed, .nothing: throw ServerError(503, "the server's store has not given the bytes of an object back")
      }
    }
  }
}

extension StoredItem {
  /// S3 has no inodes: the ETag tells versions apart, and two objects with the same ETag have the same bytes.
  init(_ head: S3Head) {
    self.init(
      length: head.length, tag: head.tag, head.fileTime.flatMap { ModificationTime($0.utf8) }, head.modified ?? 0)
  }

  /// A list does not tell the times that clients have sent.
  init(_ entry: S3Entry) {
    self = entry.isFolder ? .folder : StoredItem(length: entry.length, tag: entry.tag ?? "", nil, entry.modified ?? 0)
  }

  /// `modified`: what the client has sent. `stored`: when the object was made, in seconds since 1970.
  init(length: Int64, tag: String, _ modified: ModificationTime?, _ stored: Int64) {
    let digest = Digest.value(of: Array(tag.utf8), .sha256)
    let version = digest.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    self.init(
      isFolder: false, length: length, modified: modified?.sinceEpoch ?? stored.multipliedClamped(by: 1_000_000_000),
      modifiedSeconds: modified?.seconds ?? stored, changed: 0, inode: version)
  }

  static let folder = StoredItem(isFolder: true, length: 0, modified: 0, modifiedSeconds: 0, changed: 0, inode: 0)
}
