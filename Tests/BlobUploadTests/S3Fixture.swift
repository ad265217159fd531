import BlobClient
import BlobHTTP
import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobUpload

/// A strict server in memory, and an uploader for it.
protocol S3Fixture {
  var transport: SocketTransport { get }
}

extension S3Fixture {
  static var connections: SocketTransport { SocketTransport(.init(connections: 16, noProgress: .seconds(30))) }

  func uploader(
    _ peer: S3Peer, _ options: S3Multipart.Options = .init(partSize: 5 << 20), signer: S3Signer? = nil,
    partSize: Int64? = nil, retries: Int = 8, port: Int? = nil
  ) async throws -> Uploader {
    let signer = signer ?? S3Signer(peer.options.credentials, region: peer.options.region)
    let destination = try await UploadDestination.s3(
      S3Address(bucket: peer.options.bucket, endpoint: "http://127.0.0.1:\(port ?? peer.port)", region: signer.region),
      signer: signer, options: options, over: transport)
    var uploader = Uploader(
      destination, transport: transport, retry: RetryPolicy(retries: retries), partSize: partSize)
    uploader.clock = LeapingClock()
    return uploader
  }

  func peer(_ change: (inout S3Peer.Options) -> Void = { _ in }) -> S3Peer {
    var options = S3Peer.Options()
    change(&options)
    return S3Peer(options)
  }

  /// Credentials with an expired token, for a server that requires the renewed ones.
  func expired() -> (signer: S3Signer, wanted: @Sendable (inout S3Peer.Options) -> Void) {
    let old = S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s", sessionToken: "old")
    let new = S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "s", sessionToken: "new")
    return (
      S3Signer(old, region: "us-east-1", renewal: { new }),
      { options in (options.credentials, options.expiredToken) = (new, "old") }
    )
  }

  func failure(_ body: () async throws -> Void) async throws -> UploadError {
    do { try await body() } catch { return try #require(error as? UploadError) }
    throw CheckFailure("nothing was thrown")
  }
}
