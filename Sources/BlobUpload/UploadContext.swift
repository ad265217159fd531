import BlobHTTP
import Blobs

/// The environment of a protocol: sends its requests, and receives the events of the upload.
public struct UploadContext: Sendable {
  let server: UploadServer
  /// Receives the events of the upload.
  public var events: any UploadEvents
  /// The source to upload; nil if there is none.
  var source: SpooledSource?
  /// Parts of the request's body that are as secret as credentials and must not be shown or stored: values of form
  /// fields.
  var secretValues: [String] = []
  /// Reading a body twice costs next to nothing.
  var isLocal = true
  /// The journal's entry of the upload; nil: there is none.
  var entry: Int64?

  /// - `headers`: credentials and the user's own fields. They are sent only to the origin of `endpoint`, as every
  ///   request is.
  /// - `traits`: traits of the protocol that uses this context.
  public init(
    transport: any Transport, headers: HTTPHeaders = [:], endpoint: HTTPURL, traits: UploadTraits,
    events: any UploadEvents = NoUploadEvents()
  ) {
    self.init(UploadServer(transport, Credentials(headers), at: endpoint, HostState(), sign: traits.sign), events)
  }

  /// For requests to `destination` that are no upload of a file.
  package init(_ destination: UploadDestination, over transport: any Transport) {
    self.init(
      UploadServer(
        transport, destination.credentials, at: destination.endpoint, HostState(), sign: destination.traits.sign))
  }

  init(_ server: UploadServer, _ events: any UploadEvents = NoUploadEvents()) {
    self.server = server
    self.events = events
  }

  /// The whole source, for a protocol that must compare it with the server's file; nil if there is no source.
  public var whole: BlobSlice? { source?.whole }

  /// Reports the session of an upload, before any further request is sent.
  public func opened(_ session: UploadSession) { events.opened(session) }

  var trailers: Trailers { server.knowledge.trailers }
  /// How PATCH and DELETE requests reach the server.
  var methods: MethodOverride { server.knowledge.methods }
  /// Whether a successful response to PUT means that the body was stored.
  var putAnswers: PutAnswers { server.knowledge.putAnswers }
  /// Whether the host returns uploads under their own URLs.
  var uploadURLs: UploadURLs { server.knowledge.uploadURLs }
  /// The names that uploads to this destination currently use.
  var names: NameGates { server.knowledge.names }
}

/// Events of an upload while its requests are running. Called on any thread; each call must be short.
public protocol UploadEvents: AnyObject, Sendable {
  /// Called when a session is known, before any further request. The receiver records it so that it becomes durable.
  func opened(_ session: UploadSession)
  /// Returns once the session that `opened` was last called with would survive a SIGKILL.
  func makeDurable() async throws(UploadError)
  /// The server has confirmed all bytes before `offset`.
  func acknowledged(_ offset: Int64)
  /// Body bytes were handed to the connection; negative if that many bytes are about to be sent again.
  func sent(_ count: Int)
}

extension UploadEvents {
  public func makeDurable() async throws(UploadError) {}
}

/// Ignores all events.
public final class NoUploadEvents: UploadEvents {
  /// Creates an object without state.
  public init() {}
  public func opened(_ session: UploadSession) {}
  public func acknowledged(_ offset: Int64) {}
  public func sent(_ count: Int) {}
}

/// State and settings that the requests of all uploads to a destination share.
final class UploadServer: Sendable {
  let transport: any Transport
  /// They are for the origin of `endpoint` and no other.
  let credentials: Credentials
  let endpoint: HTTPURL
  let knowledge: HostState
  /// nil: there is none.
  let journal: Journal?
  /// Adds a signature over the complete request as the last step before it is sent.
  let sign: (@Sendable (inout HTTPRequest) -> Void)?
  /// Called with the number of bytes that were just read to be compared with the server's bytes.
  let compared: @Sendable (Int) -> Void
  /// Called with messages for the user that do not stop the upload.
  let notice: @Sendable (String) -> Void
  /// Repeats the closure according to the retry policy until a response arrives. Throws final errors.
  let patiently:
    @Sendable (_ what: String, _ ask: () async throws(UploadError) -> Void) async throws(UploadError) -> Void

  init(
    _ transport: any Transport, _ credentials: Credentials, at endpoint: HTTPURL, _ knowledge: HostState,
    journal: Journal? = nil, sign: (@Sendable (inout HTTPRequest) -> Void)? = nil,
    compared: @escaping @Sendable (Int) -> Void = { _ in },
    notice: @escaping @Sendable (String) -> Void = { _ in },
    patiently:
      @escaping @Sendable (
        _ what: String, _ ask: () async throws(UploadError) -> Void
      ) async throws(UploadError) -> Void = { _, ask async throws(UploadError) in try await ask() }
  ) {
    self.transport = transport
    self.credentials = credentials
    self.endpoint = endpoint
    self.knowledge = knowledge
    self.journal = journal
    self.sign = sign
    self.compared = compared
    self.notice = notice
    self.patiently = patiently
  }
}
