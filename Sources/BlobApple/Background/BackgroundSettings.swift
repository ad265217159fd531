import BlobUpload
import Blobs
import Platform

/// The settings of a `BackgroundUploader`.
package struct BackgroundSettings: Sendable {
  package var spool: BytePath
  /// The spool never has more bytes than this.
  package var spoolBytes: Int64
  /// Files that exist at the destination are replaced.
  package var overwrite: Bool
  package var retry: RetryPolicy
  /// Uploads that one process has begun and not ended. Beyond them `add` waits: each takes some 5 KB of memory.
  package var mostUploads: Int64 = 1000
  /// A pause between retries up to this length is waited for; the system waits for longer ones.
  package var longestPause = Duration.seconds(4)
  /// How long events of tasks that ended before this process was there are waited for, unless the system says that all
  /// were delivered.
  package var settling = Duration.seconds(5)
  /// How long the end of a cancelled request is waited for before another version of its source is sent.
  package var cancelling = Duration.seconds(10)
  /// The system's completion handler is called after this time at the latest.
  package var handlerLimit = Duration.seconds(20)
  /// The first pause after the server has refused the credentials; later ones are longer.
  package var firstRefusalPause = Duration.seconds(60)
  /// How often renewed credentials are asked for during such a pause.
  package var renewalInterval = Duration.seconds(30)
  /// Writes pieces, as `write(2)` does.
  package var write: @Sendable (Int32, UnsafeRawBufferPointer) -> Int = { Platform.write($0, $1.baseAddress, $1.count) }

  /// A failure may last for hours, and costs nothing while the system waits. Failures of the network are not counted,
  /// because the system does not report them.
  package static let usualRetry = {
    var retry = RetryPolicy(first: .seconds(2), longest: .seconds(3600), outage: .seconds(7 * 24 * 3600))
    retry.retries = 12
    return retry
  }()

  package init(
    spool: BytePath, spoolBytes: Int64, overwrite: Bool = false, retry: RetryPolicy = usualRetry
  ) {
    self.spool = spool
    self.spoolBytes = max(4, spoolBytes)
    self.overwrite = overwrite
    self.retry = retry
  }

  /// The pause after a refusal of the credentials, at most an hour. `refusals` have come before.
  func refusalPause(after refusals: Int) -> Duration {
    min(.seconds(3600), firstRefusalPause * (1 << min(refusals, 16)))
  }

  /// Bytes of the largest piece. Several uploads have pieces in the spool at the same time.
  package var pieceBytes: Int64 { spoolBytes / 4 }

  /// The destination with bodies that fit into the spool. Throws if its protocol cannot go on after any byte.
  func adapt(_ destination: UploadDestination) throws(UploadError) -> UploadDestination {
    guard let offer = destination.uploadProtocol.withFileBodies(upTo: pieceBytes, destination.limits) else {
      throw UploadError(
        .giveUp, .destination,
        "\(destination.endpoint): background uploads need tus or the IETF's protocol, and this is \(destination.uploadProtocol.name)"
      )
    }
    var destination = destination
    (destination.uploadProtocol, destination.limits) = (offer.uploadProtocol, offer.limits)
    return destination
  }
}
