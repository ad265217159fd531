import Blobs

/// A file that the server has received, and that has its name.
public struct ReceivedFile: Sendable {
  /// The path below the served folder.
  public var path: BytePath { BytePath(target.bytes) }
  let target: ServedPath
  /// The size in bytes.
  public let length: Int64
  /// Whether the same bytes had this name already, so that nothing was changed.
  public let wasThere: Bool
  /// The client that sent the last byte; nil if the server has published the file by itself when it was started, because
  /// all bytes had arrived before.
  public let sender: Sender?

  init(_ target: ServedPath, _ publication: Publication, by sender: Sender?) {
    self.target = target
    length = publication.item.length
    wasThere = publication.outcome == .same
    self.sender = sender
  }
}

/// A client, as far as the server knows it.
public struct Sender: Sendable, Hashable {
  /// The IP address from which it is connected, which may be a proxy's; nil: the connection had ended.
  public let address: String?
  /// The `User-Agent` field of the request; nil: it has none. A client can write anything there.
  public let agent: String?
}
