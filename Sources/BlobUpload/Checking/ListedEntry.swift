import BlobHTTP
import Blobs

/// A file or a folder in a folder of a server, as the server lists it. The name was not checked: it may be `..`, or have a
/// slash in it.
public struct ListedEntry: Sendable, Hashable {
  /// The name in its folder, without a slash at its end.
  public var name: BytePath
  /// Whether it can be listed itself.
  public var isFolder: Bool

  /// Creates an entry of a name and a kind.
  public init(_ name: BytePath, isFolder: Bool) { (self.name, self.isFolder) = (name, isFolder) }
}

extension UploadContext {
  /// Throws if a listing was refused for a reason that a later try may not meet, or that concerns every request.
  func checkListing(_ request: HTTPRequest, _ response: HTTPResponse) throws(UploadError) {
    if response.isSuccess { return }
    let refusal = UploadError(request, response)
    if response.refusesAll { throw refusal }
    if case .retry = refusal.recovery { throw refusal }
  }
}
