import BlobCrypto
import Blobs

/// An item that the server has said it stored.
final class SentItem: Sendable {
  let work: ClaimedItem
  /// The ID of the entry in the journal.
  let id: Int64
  let progress: UploadProgress
  /// As `RecentUploads.Upload.isAlone`.
  let isAlone: Bool
  let target: UploadTarget
  /// With the digest that was made while the bytes were read.
  let result: UploadResult
  /// The algorithm of that digest; nil: none was made.
  let algorithm: Digest.Algorithm?

  init(
    _ work: ClaimedItem, _ id: Int64, _ progress: UploadProgress, isAlone: Bool, _ target: UploadTarget,
    _ result: UploadResult, _ algorithm: Digest.Algorithm?
  ) {
    (self.work, self.id, self.progress, self.isAlone) = (work, id, progress, isAlone)
    (self.target, self.result, self.algorithm) = (target, result, algorithm)
  }

  /// The content that the server must have.
  var expected: ExpectedContent {
    if let digest = result.digest, let algorithm { return .digest(digest, algorithm) }
    let item = work.item
    return .bytes(of: BlobSlice(item.source, length: item.info.length, validator: item.info.validator))
  }
}
