import BlobUpload
import Blobs

/// The state of one upload of a `BackgroundUploader`.
public struct BackgroundUpload: Sendable {
  /// How far an upload is.
  public enum State: Sendable {
    /// Its bytes are being read or sent, or it waits for the system or for room in the spool.
    case uploading
    /// A request has failed and is repeated after the delay. The system may take longer.
    case waiting(UploadError, Duration)
    /// The server has all bytes. nil: it had them before, and nothing was sent.
    case finished(UploadResult?)
    /// The upload was given up. Its session is kept in the journal: `tryAgain(_:)`, or adding the source again,
    /// goes on from there.
    case failed(UploadError)
    /// `cancel` has ended it.
    case cancelled
  }

  /// The path below the destination's folder.
  public var name: BytePath
  /// Identifies the source in every launch, as the `identity` of `add`: for a photo `PhotoGallery.Item.identity`.
  public var identity: BytePath
  /// Bytes; nil: not known before the source has ended, or nothing was sent of such a source.
  public var length: Int64?
  /// Bytes from the start that the server has confirmed.
  public var acknowledged: Int64 = 0
  /// Bytes from the start that were handed to the network; it decreases when bytes are sent again.
  public var sent: Int64 = 0
  /// How far the upload is.
  public var state = State.uploading
  /// When the upload has ended, in seconds since 1970, in the results of `failures` and `finished`; nil in all others.
  public var ended: Int64?

  init(_ name: BytePath, identity: BytePath, length: Int64? = nil) {
    self.name = name
    self.identity = identity
    self.length = length
  }
}

extension BackgroundUpload.State: CustomStringConvertible {
  /// A text for the person who uses the app, in English, with the reason of a failure.
  public var description: String {
    switch self {
    case .uploading: "uploading"
    case .waiting(let error, let delay): "again in \(delay.components.seconds) s: \(error.message)"
    case .finished: "uploaded"
    case .failed(let error): "failed: \(error.message)"
    case .cancelled: "cancelled"
    }
  }
}

extension BackgroundUpload.State {
  /// The upload has failed because the source is no longer the version that was being uploaded.
  var saysChanged: Bool {
    if case .failed(let error) = self { error.isOfChangedSource } else { false }
  }
}
