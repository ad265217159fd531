import BlobHTTP
import Blobs
import Platform

/// The address, limits and timeouts of a `Server`.
public struct ServerOptions: Sendable {
  /// The folder to serve and to receive into; it must exist.
  public var folder: BytePath
  /// An IP address, or `localhost`.
  public var address: String
  /// 0 selects a free port, which `Server.port` returns.
  public var port: UInt16
  /// If `port` is taken, the ports after it up to this one are tried; nil: then the server does not start.
  public var lastPort: UInt16?
  /// The token that every request must send, as a Bearer token (RFC 6750 §2.1) or as the password of any user (RFC 7617);
  /// nil: none is required.
  public var token: String?
  /// Certificate and key; nil: plain HTTP.
  public var tls: TLSFiles?
  /// How long an unfinished upload is kept after its last byte.
  public var expire: Duration
  /// Maximum bytes of one upload; nil: limited by the disk only.
  public var maxSize: Int64?
  /// Maximum bytes of all files in the folder, including unfinished uploads; nil: limited by the disk only.
  public var maxTotal: Int64?
  /// Whether uploads and deletion are disabled.
  public var isReadOnly: Bool
  /// What clients may read of the published files. Whoever sends a file learns in any case whether its name is taken.
  public var reading: Reading
  /// The page that browsers get at the URL of every folder; nil: they get a simple list with a form.
  public var page: BrowserPage?
  /// Whether `DELETE` removes files.
  public var allowsDelete: Bool
  /// Web origins (`https://host:port`, or `*`) whose pages may use the server; empty: only its own.
  public var allowedOrigins: [String]
  /// Additional names that requests may use in `Host`, with or without a port: those of a reverse proxy or of this
  /// machine. Without them, a server that listens on a loopback address and has no token accepts only loopback names.
  public var hosts: [String]
  /// How long a connection may be silent before it is closed.
  public var idleTimeout: Duration
  /// How long a client may take to send the header section of a request.
  public var headTimeout: Duration
  /// Minimum bytes per second of a request or response, averaged over each `idleTimeout`; 0: no minimum.
  public var minimumRate: Int
  /// Maximum number of unfinished uploads at any time; nil: no limit.
  public var maxUnfinished: Int?

  /// Finds the preview in a picture: given the first `mostReadForThumbnail` bytes of the file, a JPEG; nil: there is none. On
  /// a thread of the server. What it returns is sent to clients as it is. nil: there are no thumbnails.
  public var thumbnail: (@Sendable (_ start: [UInt8]) -> [UInt8]?)?

  /// How many bytes `thumbnail` gets, if the file has as many.
  public static let mostReadForThumbnail = 256 << 10

  /// Called with lines for the operator while the server runs, for example that another folder has taken the place of the
  /// served one. On a thread of the server; must be short. nil: they are dropped.
  public var notice: (@Sendable (String) -> Void)?

  /// Called with each file that was received completely and has its name, before its client is answered. On a thread of the
  /// server; must be short. nil: nobody wants to know.
  public var received: (@Sendable (ReceivedFile) -> Void)?

  /// Called with each answered request. On the event loop that all connections wait for; must not block. nil: nobody wants
  /// to know.
  public var answered: (@Sendable (AnsweredRequest) -> Void)?

  /// An address of this machine at which the metrics are read without a token; nil: they are at `/metrics` of the server,
  /// for whoever has the token.
  public var metrics: (address: String, port: UInt16)?

  /// Creates options. The properties say what each option does, and which value means no limit.
  public init(
    folder: BytePath, address: String = "127.0.0.1", port: UInt16 = 8080, token: String? = nil,
    tls: TLSFiles? = nil, expire: Duration = .seconds(24 * 3600), maxSize: Int64? = nil, maxTotal: Int64? = nil,
    isReadOnly: Bool = false, reading: Reading = .files, page: BrowserPage? = nil, allowsDelete: Bool = false,
    allowedOrigins: [String] = [], hosts: [String] = [],
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
    self.reading = reading
    self.page = page
    self.allowsDelete = allowsDelete
    self.allowedOrigins = allowedOrigins
    self.hosts = hosts
    self.idleTimeout = idleTimeout
    self.headTimeout = headTimeout
    self.minimumRate = minimumRate
    self.maxUnfinished = maxUnfinished
  }
}

extension ServerOptions {
  /// What clients may read of the published files.
  public enum Reading: Sendable {
    /// Neither files nor the names in folders.
    case nothing
    /// Names, sizes and times, by lists of folders and by `HEAD`.
    case names
    /// Everything.
    case files
  }

  /// The page with which a browser sends files and, as far as `reading` permits, lists and fetches them. It is a part of
  /// the library, and has the protocols of other clients. Anyone may open it; it asks for the token, unless the fragment of
  /// its URL (`#TOKEN`), which browsers send to no server, has it.
  public struct BrowserPage: Sendable {
    /// The receiver's name that the page shows, such as that of the folder.
    public var name: String
    /// When the server is going to end, in seconds since 1970; nil: this is not known.
    public var end: Int64?
    /// Whether the server is going to end when nobody uses the page any more.
    public var endsAfterVisit: Bool

    /// Creates a description of the page. `period`: how long the server runs from now on; nil: this is not known.
    public init(name: String, runsFor period: Duration? = nil, endsAfterVisit: Bool = false) {
      self.name = name
      self.endsAfterVisit = endsAfterVisit
      end = period.map { (wallClock() / 1_000_000_000).addingClamped($0.components.seconds) }
    }
  }
}

/// The server's TLS certificate and key. PEM files, read when the server starts.
public struct TLSFiles: Sendable {
  /// The server's own certificate, followed by the chain that signed it.
  public var certificate: BytePath
  /// Must not be encrypted. Only the server's user should be able to read it.
  public var key: BytePath

  /// Creates a pair of paths. The files are read when the server starts.
  public init(certificate: BytePath, key: BytePath) {
    self.certificate = certificate
    self.key = key
  }
}

/// The reason why the server cannot start or cannot fulfil a request.
public struct ServerError: Error, Sendable, CustomStringConvertible {
  /// The operation that failed, its object, and what to do.
  public var message: String
  /// The HTTP status of the response to the client.
  package var status: Int
  /// The registered name of the problem type, if there is one. RFC 9457 §4.2.
  package var problem: String?
  /// The reason, for which a client may have a text in its user's language; nil: only `message` has the reason.
  package var kind: Kind?
  /// Additional header fields of the response.
  package var headers: HTTPHeaders = [:]
  /// The system's error number; nil if the error is not the system's.
  package var systemError: Int32?
  /// The client sent more bytes than the upload's length.
  package var isPastLength = false
  /// The limit of unfinished uploads is reached.
  package var isLackOfUploads = false
  /// Another program has the port.
  public var isPortTaken: Bool { systemError == EADDRINUSE }
  /// The error is of the address for metrics.
  package var isOfMetrics = false
  /// The upload has all its bytes: it is being published, or was published.
  package var isAfterEnd = false
  /// Another server holds the upload now, so that this request has had no further effect.
  package var isLossOfClaim = false
  /// Whether an upload whose publication failed with this error can never be published.
  package var endsUpload: Bool { status < 500 }

  /// Creates an error of the server itself, as if for a response with status 500.
  public init(_ message: String) { self.init(500, message) }

  package init(_ status: Int, _ message: String, problem: String? = nil, kind: Kind? = nil) {
    self.status = status
    self.message = message
    self.problem = problem
    self.kind = kind
  }

  public var description: String { message }
}

extension ServerError {
  /// Raises the status of file system errors, such as a folder without write permission, to 500. The operator can fix
  /// these, and the upload keeps its bytes until then. A status below 500 would tell the client that its upload is
  /// lost, and the client would send all bytes again. 410 stays: an upload without bytes has nothing to keep.
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
