import Blobs
import Foundation

/// How errors look through `streamError`: an `NSError`, with the source's own error underneath.
extension BlobError {
  /// The domain of every `streamError`, except where a read only came too early (`EAGAIN` of the POSIX domain).
  public static let streamErrorDomain = "BlobStreamErrorDomain"

  /// The source's error underneath a stream's `streamError`; nil where there is none.
  public init?(underlying streamError: (any Error)?) {
    let underlying = streamError.map { $0 as NSError }?.userInfo[NSUnderlyingErrorKey]
    guard let error = underlying as? BlobError else { return nil }
    self = error
  }

  /// What a stream shows for this error. The code is the system's error number, or 0.
  package var streamError: NSError {
    NSError(
      domain: Self.streamErrorDomain, code: Int(errno),
      userInfo: [NSUnderlyingErrorKey: self, NSLocalizedDescriptionKey: message])
  }
}
