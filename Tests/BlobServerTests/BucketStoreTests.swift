import BlobTesting
import TestSupport
import Testing

/// The store in a bucket, at a strict S3 server in this process.
struct BucketStoreTests {
  @Test(arguments: StoreCheck.all)
  func conforms(_ check: StoreCheck) async throws { try await check.run(.bucket) }
}

extension StoreFixture {
  static let bucket = StoreFixture("S3Store", lacks: [.joining, .receptionDigests, .folders, .openVersions, .anyNames])
  {
    let (peer, folder) = (S3Peer(), try TestFolder())
    return { expire, maxTotal in try peer.store(in: folder, expire: expire, maxTotal: maxTotal) }
  }
}
