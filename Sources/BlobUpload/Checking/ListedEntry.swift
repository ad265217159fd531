import BlobHTTP
import Blobs

/// A file or a folder in a folder of a server, as the server lists it. The name was not checked: it may be `..`, or have a
/// slash in it.
public struct ListedEntry: Sendable, Hashable {
  /// The name in its folder, without a slash at its end.
  public var name: BytePath
  /// Whether it can be listed itself.
  public var isFolder: Bool

  /// The most pages of a folder's list. A server that never ends would be asked for ever.
  static let mostPages = 200_000

  /// Creates an entry of a name and a kind.
  public init(_ name: BytePath, isFolder: Bool) { (self.name, self.isFolder) = (name, isFolder) }
}

extension UploadContext {
  /// Throws if a listing was refused for a reason that a later try may not meet, or that concerns every request, or if there
  /// is no such folder.
  func checkListing(_ request: HTTPRequest, _ response: HTTPResponse) throws(UploadError) {
    if response.isSuccess { return }
    let refusal = UploadError(request, response)
    if response.refusesAll { throw refusal }
    if case .retry = refusal.recovery { throw refusal }
    if [404, 410].contains(response.status) {
      throw UploadError(
        .giveUp, .file, "\(request.method) \(request.url): there is no such folder (\(response.status))",
        status: response.status)
    }
  }
}

extension UploadError {
  /// A list whose end does not come.
  static func endlessListing(_ request: HTTPRequest) -> UploadError {
    UploadError(.giveUp, .file, "\(request.method) \(request.url): the server repeats its list, or does not end it")
  }

  /// There is no folder of the listed name.
  var isOfMissingFolder: Bool { side == .file && (status == 404 || status == 410) }
}
