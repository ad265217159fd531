import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

/// The server that is examined, and how requests reach it.
struct DoctorTarget: Sendable {
  let destination: Destination
  let connection: ConnectionOptions
  /// Credentials and the user's own fields. They go to the origin of the destination only.
  let headers: HTTPHeaders
  let report: DoctorReport
  /// The name of everything that is written, or asked for in vain.
  let testName = "fullbore-doctor-" + String(UInt64.random(in: 1 << 60 ... .max), radix: 16)

  var endpoint: HTTPURL { destination.endpoint }

  init(
    _ destination: Destination, _ connection: ConnectionOptions, _ report: DoctorReport
  ) async throws(UploadError) {
    (self.destination, self.connection, self.report) = (destination, connection, report)
    headers = try await connection.fields(for: destination.endpoint)
  }

  /// The options of `push`, with shorter timeouts.
  func transportOptions() throws(UploadError) -> SocketTransport.Options {
    var options = try connection.transportOptions(connections: 4)
    options.connect = min(options.connect, .seconds(10))
    if connection.timeout == nil { options.noProgress = .seconds(15) }
    if connection.finishTimeout == nil { options.finishing = .seconds(30) }
    return options
  }

  /// A request with the credentials, which go to no other origin than that of the destination.
  func request(_ method: String, _ url: HTTPURL, _ fields: HTTPHeaders = [:]) -> HTTPRequest {
    var request = HTTPRequest(method, url, fields)
    if url.isAtServer(of: endpoint) {
      for (name, value) in headers.fields where request.headers[name] == nil { request.headers.add(name, value) }
    }
    return request
  }

  /// Sends a request without a body, or with an empty one.
  func answer(
    to request: HTTPRequest, over transport: any Transport
  ) async throws(TransportError) -> HTTPResponse {
    let response = try await transport.send(request, body: nil, Exchange())
    report.noteProgram(ServerProgram(of: response))
    return response
  }

  /// The test name below the folder of the destination.
  var testURL: HTTPURL { endpoint.folder.appending(pathBytes: testName.utf8) }

  /// A URL below the destination that has nothing; below a tus server's own URL, uploads are.
  var missingURL: HTTPURL { endpoint.appending(pathBytes: testName.utf8) }
}

/// The options of an examination.
struct DoctorOptions: Sendable {
  /// The largest size that requests are announced with.
  var largest: Int64 = 100 << 30
  /// For how long a body pauses.
  var pause = Duration.seconds(10)
  /// The origin of a page that uploads; nil: CORS is examined only where the server offers it to every page.
  var origin: String?
  /// Whether a test file may be written; nil: the user is asked, on a terminal.
  var mayWrite: Bool?
  var isJSON = false
}

/// The requests of the protocols that count offsets, for uploads with a URL of their own.
enum UploadDialect: Sendable {
  case tus
  case resumable

  /// nil: the protocol has no such uploads.
  init?(_ protocolName: String) {
    switch protocolName {
    case "tus": self = .tus
    case "resumable": self = .resumable
    default: return nil
    }
  }

  /// The field by which a response of a tus server is known.
  static let mark = "Tus-Resumable"

  func request(_ method: String, _ url: HTTPURL) -> HTTPRequest {
    switch self {
    case .tus: HTTPRequest(method, url, [Self.mark: Tus.version])
    case .resumable: IETFResumable().request(method, url)
    }
  }

  func append(to url: HTTPURL, at offset: Int64) -> HTTPRequest {
    var request = request("PATCH", url)
    request.headers.add("Upload-Offset", String(offset))
    switch self {
    case .tus: request.headers.add("Content-Type", Tus.bodyType)
    case .resumable:
      request.headers.add("Upload-Complete", "?0")
      request.headers.add("Content-Type", IETFResumable.bodyType)
    }
    return request
  }

  /// Whether a response certainly comes from the server, and not from a proxy: tus servers mark every response. nil: the
  /// protocol has no such mark. tus 1.0 §Core Protocol, Tus-Resumable.
  func isMarked(_ response: HTTPResponse) -> Bool? {
    self == .tus ? response.headers[Self.mark] != nil || response.headers["Tus-Version"] != nil : nil
  }
}
