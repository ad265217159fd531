import BlobTesting
import BlobUpload
import Blobs

extension ProtocolFixture {
  /// All supported protocols. Those without another server are tested against the embedded `Server`.
  public static let all = [
    ProtocolFixture("tus", Tus(wholeUpTo: small), wholeUpTo: small),
    ProtocolFixture("tus in small parts", Tus(wholeUpTo: small), partSize: 700_001, wholeUpTo: small),
    ProtocolFixture(
      "tus with checksums", Tus(wholeUpTo: small, checksum: .sha1), partSize: 700_001, wholeUpTo: small,
      noticesChanges: true),
    ProtocolFixture(
      "tus with checksums after the bytes", trailing, partSize: 700_001, wholeUpTo: small, noticesChanges: true),
    ProtocolFixture("tus in parts at once", Tus(wholeUpTo: small), partsAtOnce: 3, wholeUpTo: small),
    ProtocolFixture("resumable", IETFResumable(wholeUpTo: small), wholeUpTo: small),
    ProtocolFixture("resumable in small parts", IETFResumable(wholeUpTo: small), partSize: 700_001, wholeUpTo: small),
    ProtocolFixture("put", PlainPut(), wholeUpTo: small, resumes: false),
    ProtocolFixture("form", FormPost(), wholeUpTo: small, resumes: false, overhead: 1000) { FormPeer() },
    ProtocolFixture("dav", WebDAV(wholeUpTo: small), wholeUpTo: small, resumes: false) { DavPeer() },
    ProtocolFixture(
      "nextcloud", WebDAV(wholeUpTo: small), partSize: 5 << 20, wholeUpTo: small, takesUnknownLength: false
    ) { NextcloudPeer() },
    ProtocolFixture("gcs", CloudStorage(wholeUpTo: small), wholeUpTo: small, noticesChanges: true, overhead: 1000) {
      CloudPeer()
    },
    s3("s3", partSize: nil), s3("s3 in odd parts", partSize: 700_001),
    s3("s3 as Ceph", partSize: nil, isLikeCeph: true),
  ]

  private static var trailing: Tus {
    var tus = Tus(wholeUpTo: small, checksum: .sha256)
    tus.trailsChecksums = true
    return tus
  }

  /// S3 against the strict in-memory server. Parts are small, so that there are many.
  private static func s3(_ name: String, partSize: Int64?, isLikeCeph: Bool = false) -> ProtocolFixture {
    var server = S3Peer.Options()
    server.smallestPart = 1
    server.isLikeCeph = isLikeCeph
    server.knowsChecksums = !isLikeCeph
    let uploadProtocol = S3Multipart(
      bucketPath: "/\(server.bucket)/", signer: S3Signer(server.credentials, region: server.region),
      options: .init(wholeUpTo: small, partSize: 256 << 10, smallestPart: 1))
    var fixture = ProtocolFixture(
      name, uploadProtocol, partSize: partSize, partsAtOnce: 8, wholeUpTo: small, noticesChanges: true,
      makePeer: { [server] in S3Peer(server) })
    // A small memory makes the upload of a pipe have many parts too.
    fixture.pipeMemory = Int(partSize ?? 256 << 10)
    return fixture
  }

  /// More than the transport sends in one piece with the head, and still fast.
  private static let small: Int64 = 128 << 10
}
