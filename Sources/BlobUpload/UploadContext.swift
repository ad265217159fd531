import BlobHTTP
import Blobs

/// What a protocol works with: where requests go, and who is told what comes of them.
public struct UploadContext: Sendable {
  let server: UploadServer
  /// Who is told what happens.
  public var events: any UploadEvents
  /// What is to be uploaded; nil where nothing is.
  var source: SpooledSource?
  /// Of the request's body, what is to be shown and kept no more than a credential: values of a form's fields.
  var secretValues: [String] = []
  /// Reading a body twice costs next to nothing.
  var isLocal = true

  /// - `headers`: credentials and the user's own fields. They go to the origin of `endpoint`, as every request does, and to no
  ///   other.
  /// - `traits`: of the protocol that is to work with it.
  public init(
    transport: any Transport, headers: HTTPHeaders = [:], endpoint: HTTPURL, traits: UploadTraits,
    events: any UploadEvents = NoUploadEvents()
  ) {
    self.init(UploadServer(transport, Credentials(headers), at: endpoint, Acquaintance(), sign: traits.sign), events)
  }

  /// For requests to `destination` that are no upload of a file.
  package init(_ destination: UploadDestination, over transport: any Transport) {
    self.init(
      UploadServer(
        transport, destination.credentials, at: destination.endpoint, Acquaintance(), sign: destination.traits.sign))
  }

  init(_ server: UploadServer, _ events: any UploadEvents = NoUploadEvents()) {
    self.server = server
    self.events = events
  }

  /// All that is to be uploaded, for a protocol that must compare it with what is there; nil where nothing is.
  public var whole: BlobSlice? { source?.whole }

  /// Makes the session known that an upload goes on with, before any further request.
  public func opened(_ session: UploadSession) { events.opened(session) }

  var trailers: Trailers { server.knowledge.trailers }
  /// How PATCH and DELETE get through.
  var methods: MethodOverride { server.knowledge.methods }
  /// Whether a success to a PUT means that the body was stored.
  var putAnswers: PutAnswers { server.knowledge.putAnswers }
  /// Whether the host gives out uploads under their own URLs.
  var uploadURLs: UploadURLs { server.knowledge.uploadURLs }
  /// The names that uploads to this destination are at.
  var names: NameGates { server.knowledge.names }
}

/// What happens to an upload while its requests are under way. Any thread calls; each call must be short.
public protocol UploadEvents: AnyObject, Sendable {
  /// A session is known, and no further request was made yet: it is made durable here.
  func opened(_ session: UploadSession)
  /// Returns once the session that `opened` was called with last would survive a SIGKILL.
  func makeDurable() async throws(UploadError)
  /// The server vouches for all bytes before `offset`.
  func acknowledged(_ offset: Int64)
  /// Body bytes were handed to the connection; below 0 where as many are about to be sent again.
  func sent(_ count: Int)
}

extension UploadEvents {
  public func makeDurable() async throws(UploadError) {}
}

/// Nobody is told.
public final class NoUploadEvents: UploadEvents {
  public init() {}
  public func opened(_ session: UploadSession) {}
  public func acknowledged(_ offset: Int64) {}
  public func sent(_ count: Int) {}
}

/// A destination as the requests of all its uploads see it.
final class UploadServer: Sendable {
  let transport: any Transport
  /// They are for the origin of `endpoint` and no other.
  let credentials: Credentials
  let endpoint: HTTPURL
  let knowledge: Acquaintance
  /// Adds a signature, over what is there by then, as the last thing before a request is sent.
  let sign: (@Sendable (inout HTTPRequest) -> Void)?
  /// Called with the number of bytes that were just read to be compared with what the server has.
  let compared: @Sendable (Int) -> Void
  /// Called with what the user should know though the upload goes on.
  let notice: @Sendable (String) -> Void
  /// Repeats what it is given until there is an answer, as the retry policy has it. Throws an error that is final.
  let patiently:
    @Sendable (_ what: String, _ ask: () async throws(UploadError) -> Void) async throws(UploadError) -> Void

  init(
    _ transport: any Transport, _ credentials: Credentials, at endpoint: HTTPURL, _ knowledge: Acquaintance,
    sign: (@Sendable (inout HTTPRequest) -> Void)? = nil, compared: @escaping @Sendable (Int) -> Void = { _ in },
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
    self.sign = sign
    self.compared = compared
    self.notice = notice
    self.patiently = patiently
  }
}
