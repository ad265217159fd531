import BlobCrypto
import BlobServer
import BlobUpload
import Blobs

/// The bytes of uploads that do not fill a part yet, which are objects of their own.
struct S3Tails: Sendable {
  let bucket: S3Bucket

  /// Reads a tail into memory, which it is short enough for.
  func read(of id: UploadID, _ tail: StoredBytes.Tail) throws(ServerError) -> [UInt8] {
    var bytes: [UInt8] = []
    try read(of: id, tail) { (piece) throws(ServerError) in bytes += piece }
    return bytes
  }

  /// Sends a tail as the beginning of a part.
  func copy(of id: UploadID, _ tail: StoredBytes.Tail, to sender: PartSender) throws(ServerError) {
    try read(of: id, tail) { (piece) throws(ServerError) in try sender.write(all: piece) }
  }

  private func read(
    of id: UploadID, _ tail: StoredBytes.Tail, _ take: ([UInt8]) throws(ServerError) -> Void
  ) throws(ServerError) {
    let url = bucket.tail(of: id, tail.name)
    let head = try bucket.wait { s3, context async throws(UploadError) in try await s3.head(of: url, context) }
    guard let head, head.length >= tail.length else { throw ServerError(410, "bytes of the upload are gone") }
    let digest = Digest(.sha256)
    try S3Content(bucket: bucket, url: url, tag: head.tag).read(0..<tail.length) { (piece) throws(ServerError) in
      piece.withUnsafeBytes { digest.update($0) }
      try take(piece)
    }
    // A tail of other bytes must not become a part of the file.
    if Digest.hex(digest.value()) != tail.sha256 { throw ServerError(410, "bytes of the upload were changed") }
  }

  func delete(of id: UploadID, _ stored: StoredBytes) async throws(UploadError) {
    for name in stored.tails { try await bucket.s3.delete(bucket.tail(of: id, name), bucket.context) }
  }
}
