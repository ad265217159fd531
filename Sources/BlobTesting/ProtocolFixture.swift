import BlobHTTP
import BlobUpload
import Blobs

/// An upload protocol and a server that implements it, to be tested with every `ProtocolCheck`.
///
/// A capability that the protocol lacks is declared here, and the checks verify that it is missing.
public struct ProtocolFixture: Sendable, CustomStringConvertible {
  /// The name of the fixture in messages of failed checks.
  public var name: String
  /// The protocol to test.
  public var uploadProtocol: any UploadProtocol
  /// Bytes of a part; nil lets the protocol decide.
  public var partSize: Int64?
  /// Concurrent parts of one source from 100,000 bytes on; 1 sends one after the other.
  public var partsAtOnce: Int
  /// Sources up to this many bytes are sent in one request. Checks try lengths around it.
  public var wholeUpTo: Int64
  /// An interrupted upload continues from what the server has stored; otherwise it starts again.
  public var resumes: Bool
  /// Sources of unknown length can be sent; otherwise only those that fit into the spool's memory.
  public var takesUnknownLength: Bool
  /// Bytes of a pipe that the spool holds in memory; nil uses the uploader's default.
  public var pipeMemory: Int?
  /// Bytes changed in transit are detected and sent again.
  public var noticesChanges: Bool
  /// The server reports a digest of a published file. Otherwise a large source is refused if its name is taken,
  /// whatever the file contains.
  public var tellsDigests = true
  /// Maximum of bytes in a request body besides those of the source.
  public var overhead: Int64
  /// Starts a new server for each call. Called on a thread that may block.
  public var makePeer: @Sendable () throws -> any ProtocolPeer

  public var description: String { name }

  /// Creates a fixture. Sizes are in bytes. `makePeer` makes a new server for each check, and may block.
  public init(
    _ name: String, _ uploadProtocol: any UploadProtocol, partSize: Int64? = nil, partsAtOnce: Int = 1,
    wholeUpTo: Int64,
    resumes: Bool = true, takesUnknownLength: Bool = true, noticesChanges: Bool = false, overhead: Int64 = 0,
    makePeer: @escaping @Sendable () throws -> any ProtocolPeer = { try ServedFolder() }
  ) {
    self.name = name
    self.uploadProtocol = uploadProtocol
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

/// The server of a check. All methods block.
public protocol ProtocolPeer: Sendable {
  /// A URL on 127.0.0.1; its port stays the same after a restart.
  var endpoint: HTTPURL { get }
  /// The bytes published under a name; nil if nothing is.
  func contents(of name: BytePath) -> [UInt8]?
  /// All published names.
  func names() -> [BytePath]
  /// Bytes stored for unfinished uploads.
  func unfinished() -> Int64
  /// Stops as if killed, from the clients' view, and starts again with the state on disk.
  func restart() throws
  /// Stops the server and deletes its files.
  func stop()
}
