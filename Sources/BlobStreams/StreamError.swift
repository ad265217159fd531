import Blobs
import Foundation

/// How errors appear in `streamError`: as an `NSError` that contains the source's error.
extension BlobError {
  /// The domain of every `streamError`, except when a read came before bytes were available (`EAGAIN` of the POSIX
  /// domain).
  public static let streamErrorDomain = "BlobStreamErrorDomain"

  /// The source's error inside a stream's `streamError`; nil if there is none.
  public init?(underlying streamError: (any Error)?) {
    let underlying = streamError.map { $0 as NSError }?.userInfo[NSUnderlyingErrorKey]
    guard let error = underlying as? BlobError else { return nil }
    self = error
  }

  /// The `streamError` for this error. Its code is the system's error number, or 0.
  package var streamError: NSError {
    NSError(
      domain: Self.streamErrorDomain, code: Int(errno),
      userInfo: [NSUnderlyingErrorKey: self, NSLocalizedDescriptionKey: message])
  }
}

/// `localizedDescription` is `message`, in English.
extension BlobError: LocalizedError {
  public var errorDescription: String? { message }
}
