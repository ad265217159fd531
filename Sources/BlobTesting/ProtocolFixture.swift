import BlobHTTP
import BlobUpload
import Blobs

/// An upload dialect and a server that speaks it, to be held against every `ProtocolCheck`.
///
/// A fact that a dialect lacks is declared here, and checked to be lacking.
public struct ProtocolFixture: Sendable, CustomStringConvertible {
  public var name: String
  public var dialect: any UploadProtocol
  /// Bytes of a part; nil: as the dialect likes.
  public var partSize: Int64?
  /// Parts of one source at once, from 100,000 bytes on; 1: none.
  public var partsAtOnce: Int
  /// A source up to this many bytes travels in one request; lengths around it are tried.
  public var wholeUpTo: Int64
  /// What was cut off goes on from what the server holds; else it begins anew.
  public var resumes: Bool
  /// Sources of unknown length can be sent; else those can that are held whole.
  public var takesUnknownLength: Bool
  /// Bytes that are held of a pipe; nil: as the uploader likes.
  public var pipeMemory: Int?
  /// Bytes that are changed on the way are noticed and sent again.
  public var noticesChanges: Bool
  /// The server tells a digest of what it has; else a large source whose name is taken is refused, whatever it has.
  public var tellsDigests = true
  /// Bytes of a request's body around those of the source, at the most.
  public var overhead: Int64
  /// A server of its own for each call. Called on a thread that may block.
  public var makePeer: @Sendable () throws -> any ProtocolPeer

  public var description: String { name }

  public init(
    _ name: String, _ dialect: any UploadProtocol, partSize: Int64? = nil, partsAtOnce: Int = 1, wholeUpTo: Int64,
    resumes: Bool = true, takesUnknownLength: Bool = true, noticesChanges: Bool = false, overhead: Int64 = 0,
    makePeer: @escaping @Sendable () throws -> any ProtocolPeer = { try ServedFolder() }
  ) {
    self.name = name
    self.dialect = dialect
    self.partSize = partSize
    self.partsAtOnce = partsAtOnce
    self.wholeUpTo = wholeUpTo
    self.resumes = resumes
    self.takesUnknownLength = takesUnknownLength
    self.noticesChanges = noticesChanges
    self.overhead = overhead
    self.makePeer = makePeer
  }
}

/// A server in a check. Every method blocks.
public protocol ProtocolPeer: Sendable {
  /// On 127.0.0.1, with this port also after a restart.
  var endpoint: HTTPURL { get }
  /// The bytes published under a name; nil when there are none.
  func contents(of name: BytePath) -> [UInt8]?
  /// Every name that is published.
  func names() -> [BytePath]
  /// Bytes that are held of uploads which are not finished.
  func unfinished() -> Int64
  /// Ends as if killed, as far as clients can tell, and comes back with what it had on disk.
  func restart() throws
  /// Ends for good, and takes its files with it.
  func stop()
}
