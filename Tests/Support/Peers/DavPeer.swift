import BlobTesting
import BlobHTTP
import Blobs

/// A WebDAV server that follows RFC 4918 strictly.
public final class DavPeer: ProtocolPeer {
  /// Returns a response to use instead of handling the request; nil handles the request.
  public typealias Refusal = @Sendable (HTTPPeer.Request) -> HTTPPeer.Reply?

  private let store: DavStore
  private let peer: HTTPPeer

  /// - `tagsBeforeTime`: as with rclone, the ETag in the response to PUT is that of the file before its modification
  ///   time was set.
  /// - `heedsConditions`: `If-None-Match` and `Overwrite: F` protect existing files.
  /// - `tellsProperties`: PROPFIND is supported.
  /// - `deletesBeforeMove`: as with golang.org/x/net/webdav, a MOVE that may replace a file deletes it before it finds that
  ///   its source is gone.
  public init(
    tagsBeforeTime: Bool = false, heedsConditions: Bool = true, tellsProperties: Bool = true,
    deletesBeforeMove: Bool = false,
    refusing refusal: @escaping Refusal = { _ in nil }
  ) {
    let store = DavStore(
      tagsBeforeTime: tagsBeforeTime, heedsConditions: heedsConditions, tellsProperties: tellsProperties,
      deletesBeforeMove: deletesBeforeMove)
    self.store = store
    peer = HTTPPeer { request in refusal(request) ?? store.answer(request) }
  }

  public var endpoint: HTTPURL { peer.url }
  public func contents(of name: BytePath) -> [UInt8]? { store.files[name] }
  /// Stores a file as another client would.
  public func publish(_ bytes: [UInt8], as name: BytePath) {
    _ = store.files.publish(bytes, as: name, overwrites: true)
  }
  /// Makes a folder as another client would.
  public func makeFolder(_ name: BytePath) { store.makeFolder(name) }
  public func names() -> [BytePath] { store.names() }
  public func unfinished() -> Int64 { peer.arriving + store.unfinished() }
  public func restart() { peer.cutAll() }
  public func stop() { peer.stop() }

  /// Method and path of each request, such as `PUT /a`, in the order of arrival.
  public var requests: [String] { peer.requests }
}
