import BlobHTTP
import Synchronization

/// The URLs to which a server has redirected PUTs. One that redirects the PUTs of two names to one URL would replace the
/// first file by the second one.
final class RedirectedPuts: Sendable {
  /// By the URL of the redirect, the URL that it came from first.
  private let origins = Mutex<[String: HTTPURL]>([:])
  /// A server that redirects everything to one URL does so from the beginning, so the first redirects suffice.
  private static let most = 1024

  /// Records that the PUT of `first` is about to follow a redirect to `next`. Returns the other URL whose PUT was redirected
  /// there before; nil: there is none.
  func follow(from first: HTTPURL, to next: HTTPURL) -> HTTPURL? {
    let (first, key) = (first.normalized, next.normalized.text)
    return origins.withLock { origins in
      if let other = origins[key] { return other == first ? nil : other }
      if origins.count < Self.most { origins[key] = first }
      return nil
    }
  }
}
