import BlobHTTP
import Blobs

/// Where a `Server` listens, what it takes, and how long it waits.
public struct ServerOptions: Sendable {
  /// The folder that is served and received into; it must exist.
  public var folder: BytePath
  /// An IP address, or `localhost`.
  public var address: String
  /// 0 picks a free one; `Server.port` tells which.
  public var port: UInt16
  /// What every request must present as `Authorization: Bearer …`; nil asks for none. RFC 6750 §2.1.
  public var token: String?
  /// nil: plain HTTP.
  public var tls: TLSFiles?
  /// How long an unfinished upload is kept after its last byte.
  public var expire: Duration
  /// Bytes of one upload; nil: no limit but the disk's.
  public var maxSize: Int64?
  /// Bytes of all files in the folder, unfinished uploads with them; nil: no limit but the disk's.
  public var maxTotal: Int64?
  /// Nothing is received or deleted.
  public var isReadOnly: Bool
  /// `DELETE` removes files.
  public var allowsDelete: Bool
  /// Web origins (`https://host:port`, or `*`) whose pages may talk to the server; empty: none but its own.
  public var allowedOrigins: [String]
  /// Further names that requests may give as `Host`, with a port or without: those of a proxy in front, or of this
  /// machine. A server that listens on a loopback address and has no token answers to no others than loopback names.
  public var hosts: [String]
  /// How long a connection may stay silent before it is closed.
  public var idleTimeout: Duration
  /// How long a client may take for the head of a request.
  public var headTimeout: Duration
  /// Bytes a second that a request or its answer must move, on the average of each `idleTimeout`; 0: none need.
  public var minimumRate: Int
  /// Uploads that may be begun and not finished at any time; nil: no limit.
  public var maxUnfinished: Int?

  public init(
    folder: BytePath, address: String = "127.0.0.1", port: UInt16 = 8080, token: String? = nil,
    tls: TLSFiles? = nil, expire: Duration = .seconds(24 * 3600), maxSize: Int64? = nil, maxTotal: Int64? = nil,
    isReadOnly: Bool = false, allowsDelete: Bool = false, allowedOrigins: [String] = [], hosts: [String] = [],
    idleTimeout: Duration = .seconds(60), headTimeout: Duration = .seconds(20), minimumRate: Int = 500,
    maxUnfinished: Int? = 10_000
  ) {
    self.folder = folder
    self.address = address
    self.port = port
    self.token = token
    self.tls = tls
    self.expire = expire
    self.maxSize = maxSize
    self.maxTotal = maxTotal
    self.isReadOnly = isReadOnly
    self.allowsDelete = allowsDelete
    self.allowedOrigins = allowedOrigins
    self.hosts = hosts
    self.idleTimeout = idleTimeout
    self.headTimeout = headTimeout
    self.minimumRate = minimumRate
    self.maxUnfinished = maxUnfinished
  }
}

/// What a server proves with who it is. PEM, read when the server starts.
public struct TLSFiles: Sendable {
  /// The server's own certificate, then those it is signed with.
  public var certificate: BytePath
  /// Not encrypted. No one but the server's user should be able to read it.
  public var key: BytePath

  public init(certificate: BytePath, key: BytePath) {
    self.certificate = certificate
    self.key = key
  }
}

/// Why the server cannot start, or what keeps it from doing what a request asks.
public struct ServerError: Error, Sendable, CustomStringConvertible {
  /// What failed, on what, and what to do.
  public var message: String
  /// The HTTP status that tells a client the same.
  package var status: Int
  /// The name of its kind, where one is registered. RFC 9457 §4.2.
  package var problem: String?
  /// What the answer carries besides.
  package var headers: HTTPHeaders = [:]
  /// The upload was sent more bytes than it has.
  package var isPastLength = false
  /// No further upload may be left unfinished.
  package var isLackOfUploads = false
  /// An upload whose publication failed with this error cannot be published any more.
  package var endsUpload: Bool { status < 500 }

  public init(_ message: String) { self.init(500, message) }

  package init(_ status: Int, _ message: String, problem: String? = nil) {
    self.status = status
    self.message = message
    self.problem = problem
  }

  public var description: String { message }
}

extension ServerError {
  /// Raises the status of what the file system refuses, such as a folder without the right to write, to 500: the operator
  /// can mend that, and the upload keeps its bytes until then. A status below 500 would tell the client that its upload is
  /// gone, and the client would send all bytes again. 410 stays: an upload without bytes has nothing to keep.
  static func retryable<Result>(
    _ attempt: () throws(ServerError) -> Result
  ) throws(ServerError) -> Result {
    do throws(ServerError) {
      return try attempt()
    } catch {
      var error = error
      if error.status != 410 { error.status = max(500, error.status) }
      throw error
    }
  }
}
