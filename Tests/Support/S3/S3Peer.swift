import BlobTesting
import BlobHTTP
import BlobUpload
import Blobs

/// A strict in-memory S3 server for checks: it verifies every signature, checksum, size and part order by computing it
/// itself.
///
/// Not implemented: versions, access lists, encryption.
public final class S3Peer: Sendable {
  public struct Options: Sendable {
    public var bucket = "media"
    public var region = "us-east-1"
    public var credentials = S3Credentials(accessKey: "AKIAFAKE00EXAMPLE", secretKey: "fake/secret+key")
    /// Minimum size in bytes of every part but the last.
    public var smallestPart: Int64 = 5 << 20
    /// Parts or uploads per page of a list.
    public var page = 1000
    /// Seconds by which the server's clock is ahead.
    public var clockAhead: Int64 = 0
    /// The server computes checksums of whole objects and reports them.
    public var knowsChecksums = true
    /// The server respects `If-None-Match` and `If-Match` of requests that make objects.
    public var knowsConditions = true
    /// Returns a status and an error code to send instead of handling the request, by the number of the request,
    /// counted from 0; nil handles it.
    public var refuse: @Sendable (_ number: Int, _ request: S3PeerRequest) -> (status: Int, code: String)? = { _, _ in
      nil
    }
    /// Like Ceph, the server does not report that names in a list are percent-encoded, and uses other errors for a
    /// missing upload.
    public var isLikeCeph = false
    /// The text of the response to a completion, which the server repeats if the completion is repeated; nil: the result.
    public var completionText: String?
    /// Objects are locked by default, so requests with bytes must have a checksum.
    public var retainsByDefault = false
    /// A session token that has expired.
    public var expiredToken: String?

    public init() {}
  }

  public let port: Int
  public let options: Options
  private let listener: Int32
  let state: Monitor<S3PeerState>

  public init(_ options: Options = Options()) {
    self.options = options
    (listener, port) = Loopback.listen()
    state = Monitor(S3PeerState())
    SystemThread.start("s3-accept") { [listener, state, options] in
      while let socket = Loopback.accept(listener) {
        state.update { _ = $0.open.insert(socket) }
        SystemThread.start("s3") { S3PeerConnection(socket, state, options).serve() }
      }
      Loopback.close(listener)
    }
  }

  deinit { stop() }

  /// The bucket's URL in path style.
  public var endpoint: HTTPURL { HTTPURL("http://127.0.0.1:\(port)/\(options.bucket)/")! }

  /// Method and target of every complete request.
  public var requests: [String] { state.update { $0.requests } }
  /// The number of requests whose head has come.
  public var begun: Int { state.update { $0.begun } }

  public var objects: [String: S3PeerObject] { state.update { $0.objects } }
  public var uploads: [String: S3PeerUpload] { state.update { $0.uploads } }

  /// Changes the server's state, as another client would.
  public func change(_ body: (inout S3PeerState) -> Void) { state.update { body(&$0) } }

  /// Closes all connections.
  public func cutAll() { state.update { state in for socket in state.open { Loopback.shut(socket) } } }

  public func stop() {
    // Only once, because the descriptor's number may belong to another socket afterwards.
    let isFirst = state.update { state in
      defer { state.isStopped = true }
      return !state.isStopped
    }
    if isFirst { Loopback.shut(listener) }
    cutAll()
  }
}

extension S3Peer: ProtocolPeer {
  public func contents(of name: BytePath) -> [UInt8]? { state.update { $0.objects[name.description]?.bytes } }
  public func names() -> [BytePath] { state.update { $0.objects.keys.map { BytePath($0) } } }
  public func unfinished() -> Int64 { state.update { $0.uploads.values.reduce(0) { $0 + $1.bytes } } }
  /// Closes all connections; the state is kept.
  public func restart() { cutAll() }
}

public struct S3PeerObject: Sendable {
  public var bytes: [UInt8]
  /// The ETag with its quotes.
  public var tag: String
  /// Header fields with lower-case names.
  public var fields: [String: String]
  /// Base64 checksums by algorithm.
  public var checksums: [String: String]
  /// The time that a list tells, in seconds since 1970.
  public var made: Int64 = 1_795_302_000

  public init(
    bytes: [UInt8], tag: String, fields: [String: String] = [:], checksums: [String: String] = [:]
  ) {
    (self.bytes, self.tag, self.fields, self.checksums) = (bytes, tag, fields, checksums)
  }
}

public struct S3PeerUpload: Sendable {
  public struct Part: Sendable {
    public var bytes: [UInt8]
    public var tag: String
    public var checksums: [String: String]
  }
  public var key: String
  public var fields: [String: String]
  public var parts: [Int: Part] = [:]
  /// Seconds since 1970.
  public var begun: Int64 = 1_795_302_000

  /// An upload with one part if `bytes` is not empty.
  public init(key: String, fields: [String: String] = [:], bytes: [UInt8] = []) {
    (self.key, self.fields) = (key, fields)
    if !bytes.isEmpty { parts[1] = Part(bytes: bytes, tag: "\"\(S3Text.md5(bytes))\"", checksums: [:]) }
  }

  public var bytes: Int64 { parts.values.reduce(0) { $0 + Int64($1.bytes.count) } }
}

public struct S3PeerState: Sendable {
  public var objects: [String: S3PeerObject] = [:]
  public var uploads: [String: S3PeerUpload] = [:]
  var requests: [String] = []
  var begun = 0
  var open: Set<Int32> = []
  var made = 0
  var isStopped = false
}
