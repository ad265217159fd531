import BlobClient
import BlobServer
import BlobServerS3
import BlobTesting
import BlobUpload
import Blobs
import Synchronization
import TestSupport
import Testing

/// The store in a bucket, at a strict S3 server in this process.
struct BucketStoreTests {
  @Test(arguments: StoreCheck.all)
  func conforms(_ check: StoreCheck) async throws { try await check.run(.bucket) }
}

extension StoreFixture {
  static let bucket = StoreFixture(
    "S3Store", lacks: [.joining, .receptionDigests, .folders, .openVersions, .anyNames, .limit]
  ) {
    let (peer, folder) = (S3Peer(), try TestFolder())
    return { expire, _ in
      let signer = S3Signer(peer.options.credentials, region: peer.options.region)
      let s3 = S3Multipart(bucketPath: "/\(peer.options.bucket)/", signer: signer)
      let place = peer.endpoint.appending(pathBytes: Array("in/".utf8))
      let destination = UploadDestination(endpoint: place, uploadProtocol: s3, limits: PartLimits())
      return try S3Store(
        destination, over: SocketTransport(.init(connections: 64, adapts: false)), state: folder.path, expire: expire)
    }
  }
}
