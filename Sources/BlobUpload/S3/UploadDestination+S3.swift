import BlobHTTP
import Blobs

extension UploadDestination {
  /// Connects to a bucket, or a folder in it, with one request: wrong credentials and a wrong bucket are reported at
  /// once, and a bucket in another region is found.
  ///
  /// - `prefix`: the folder in the bucket, as bytes; object names are appended after its last slash.
  /// - `retry`, `retrying`: as for `discover`. Throws with side `.destination` if the server cannot be reached or rejects the request.
  public static func s3(
    _ address: S3Address, prefix: [UInt8] = [], signer: S3Signer, options: S3Multipart.Options = .init(),
    headers: HTTPHeaders = [:], retry: RetryPolicy? = nil,
    retrying: (@Sendable (UploadError, Duration) -> Void)? = nil, over transport: any Transport
  ) async throws(UploadError) -> UploadDestination {
    var address = address
    var moved = 0
    while true {
      let endpoint = try url(of: address, prefix)
      signer.move(to: address.region)
      do {
        return try await discover(
          endpoint, speaking: uploadProtocol(address, signer, options), headers: headers, retry: retry,
          retrying: retrying, over: transport)
      } catch {
        // A bucket has one region; a server that redirects again and again is not followed.
        guard moved < 2, let region = (error.cause as? S3OtherRegion)?.region, region != address.region else {
          throw error
        }
        moved += 1
        address.region = region
      }
    }
  }

  private static func url(of address: S3Address, _ prefix: [UInt8]) throws(UploadError) -> HTTPURL {
    guard let bucket = address.url else {
      let what = S3Address.isBucketName(address.bucket) ? "the endpoint" : "the bucket's name"
      throw UploadError(
        .giveUp, .destination, "s3://\(address.bucket.shownLine(100)): \(what) cannot be made a URL of")
    }
    return prefix.isEmpty ? bucket : bucket.appending(pathBytes: prefix)
  }

  /// Like `s3`, but does not wait for the response if it cannot change where objects go, which is so for servers other
  /// than Amazon's. `UploadQueue` checks the bucket while it sends; requests that are rejected before the check has
  /// ended are sent again according to its result.
  package static func s3Expected(
    _ address: S3Address, prefix: [UInt8] = [], signer: S3Signer, options: S3Multipart.Options = .init(),
    headers: HTTPHeaders = [:], retry: RetryPolicy? = nil,
    retrying: (@Sendable (UploadError, Duration) -> Void)? = nil, over transport: any Transport
  ) async throws(UploadError) -> UploadDestination {
    if address.isAmazon {
      return try await s3(
        address, prefix: prefix, signer: signer, options: options, headers: headers, retry: retry,
        retrying: retrying, over: transport)
    }
    let endpoint = try url(of: address, prefix)
    signer.move(to: address.region)
    var uploadProtocol = uploadProtocol(address, signer, options)
    var destination = UploadDestination(
      endpoint: endpoint, uploadProtocol: uploadProtocol, limits: uploadProtocol.limits, headers: headers)
    let question = DeferredProbe { [acquaintance = destination.acquaintance] () async throws(UploadError) in
      do throws(UploadError) {
        _ = try await s3(
          address, prefix: prefix, signer: signer, options: options, headers: headers, retry: retry,
          retrying: retrying, over: transport)
        acquaintance.contact.noteAnswer()
      } catch {
        // A missing response is no rejection: the results of the uploads say more.
        let isRefused = error.recovery == .giveUp || error.isUnreachable && !acquaintance.contact.hasAccepted
        if isRefused, error.side != .cancelled { throw error }
      }
    }
    uploadProtocol.question = question
    (destination.uploadProtocol, destination.question) = (uploadProtocol, question)
    return destination
  }

  private static func uploadProtocol(
    _ address: S3Address, _ signer: S3Signer, _ options: S3Multipart.Options
  ) -> S3Multipart {
    guard let bucket = address.url else { preconditionFailure("the endpoint was made of it") }
    return S3Multipart(bucketPath: bucket.path, signer: signer, options: options, isAmazon: address.isAmazon)
  }
}

/// The bucket is in another region.
struct S3OtherRegion: Error, Sendable {
  var region: String
}
