import BlobTesting
import BlobHTTP
import Blobs

/// A WebDAV server that is as strict as RFC 4918 has it.
public final class DavPeer: ProtocolPeer {
  /// What it answers instead of doing it; nil: does it.
  public typealias Refusal = @Sendable (HTTPPeer.Request) -> HTTPPeer.Reply?

  private let store: DavStore
  private let peer: HTTPPeer

  /// `tagsBeforeTime`: the ETag that a PUT tells is that of the file before it gets the time that it was sent with, as
  /// with rclone. `heedsConditions`: it keeps what has a name, as `If-None-Match` and `Overwrite: F` have it.
  public init(
    tagsBeforeTime: Bool = false, heedsConditions: Bool = true, refusing refusal: @escaping Refusal = { _ in nil }
  ) {
    let store = DavStore(tagsBeforeTime: tagsBeforeTime, heedsConditions: heedsConditions)
    self.store = store
    peer = HTTPPeer { request in refusal(request) ?? store.answer(request) }
  }

  public var endpoint: HTTPURL { peer.url }
  public func contents(of name: BytePath) -> [UInt8]? { store.files[name] }
  /// Another client stores a file.
  public func publish(_ bytes: [UInt8], as name: BytePath) {
    _ = store.files.publish(bytes, as: name, overwrites: true)
  }
  public func names() -> [BytePath] { store.names() }
  public func unfinished() -> Int64 { peer.arriving + store.unfinished() }
  public func restart() { peer.cutAll() }
  public func stop() { peer.stop() }

  /// `PUT /a`, in the order they came.
  public var requests: [String] { peer.requests }
}
