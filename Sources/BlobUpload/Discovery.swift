import BlobHTTP
import Blobs
import Synchronization

extension UploadDestination {
  /// Finds out how files can be uploaded to `endpoint`, with at most one request.
  ///
  /// - `speaking`: the protocol, for example `Tus()`; a `NegotiatedProtocol` asks the server which one it speaks.
  /// - `headers`: credentials and further fields of each request. They go to the endpoint's origin only.
  /// - `rereading`: called when the server has refused the credentials, for renewed `headers`, for example with a new token
  ///   of the same user, on one thread at a time, which may block. nil, also as its result: the refusal is an error.
  /// - `retry`: how often to try again if no response arrives, or if the server is unavailable, then after the delay that
  ///   it asks for. nil: twice, as long as failures come within 10 s.
  /// - `retrying`: called with the error and the delay until the next try. On any thread; must be short.
  /// - Throws with side `.destination` if the server cannot be reached or refuses.
  public static func discover(
    _ endpoint: HTTPURL, speaking discovery: any ProtocolDiscovery = NegotiatedProtocol(), headers: HTTPHeaders = [:],
    rereading: (@Sendable () -> HTTPHeaders?)? = nil, retry: RetryPolicy? = nil,
    retrying: (@Sendable (UploadError, Duration) -> Void)? = nil, over transport: any Transport
  ) async throws(UploadError) -> UploadDestination {
    let observed = ObservedTransport(transport)
    let credentials = Credentials(headers, rereading: rereading)
    let context = UploadContext(
      UploadServer(observed, credentials, at: endpoint, HostState(), sign: discovery.traits.sign))
    let target = UploadTarget(endpoint: endpoint, url: endpoint, path: "", length: nil)
    let offer = try await patiently(retry: retry, retrying: retrying) { () async throws(UploadError) in
      try await discovery.discover(target, context)
    }
    var destination = UploadDestination(
      endpoint: endpoint, uploadProtocol: offer.uploadProtocol, limits: offer.limits, headers: headers)
    destination.credentials = credentials
    destination.acquaintance.existing.note(tellsDigests: observed.wantsDigests, offered: observed.offersDigests)
    if observed.hasAnswered { destination.acquaintance.contact.noteAnswer() }
    if let why = complaint(ofQueryIn: endpoint, destination.traits) {
      throw UploadError(.giveUp, .destination, "\(endpoint)?…: \(why)", cause: WrongDestination())
    }
    return destination
  }

  /// Repeats `ask` according to `retry` while no response arrives. If that is nil, there are two more attempts, and the
  /// failure is final once the time spent waiting for responses exceeds `limit`. A server that never responds therefore
  /// costs one timeout of the transport, not three. Delays between two requests do not count.
  static func patiently<Answer>(
    within limit: Duration = .seconds(10), retry: RetryPolicy? = nil,
    retrying: (@Sendable (UploadError, Duration) -> Void)? = nil, _ ask: () async throws(UploadError) -> Answer
  ) async throws(UploadError) -> Answer {
    let policy = retry ?? RetryPolicy(retries: 2)
    var end = ContinuousClock.now + limit
    var failures = 0
    var random = SystemRandomNumberGenerator()
    do throws(UploadError) {
      return try await repeating(ask) { error async throws(UploadError) in
        failures += 1
        var asked: Duration?
        if case .retry(let after) = error.recovery { asked = after }
        guard retry != nil || ContinuousClock.now <= end,
          let wait = policy.delay(after: failures, asked: asked, using: &random)
        else {
          var last = error.after(failures: failures)
          // The caller may go on without the response, or try again later.
          last.recovery = error.recovery
          throw last
        }
        end += wait
        retrying?(error, wait)
        do { try await Task.sleep(for: wait) } catch { throw UploadError(.giveUp, .cancelled, "cancelled") }
      }
    } catch {
      var last = error
      if last.side == .file { last.side = .destination }
      throw last
    }
  }
}

/// Notes whether the server has responded, whether a response asks for digests, since a server that verifies digests also
/// returns them, and which digests a response offers.
private final class ObservedTransport: Transport {
  private let transport: any Transport
  private let answered = Atomic(false)
  private let wants = Atomic(false)
  private let offers = Monitor<[DigestAlgorithm]>([])

  init(_ transport: any Transport) { self.transport = transport }

  var hasAnswered: Bool { answered.load(ordering: .relaxed) }
  var wantsDigests: Bool { wants.load(ordering: .relaxed) }
  var offersDigests: [DigestAlgorithm] { offers.update { $0 } }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let response = try await transport.send(request, body: body, on)
    answered.store(true, ordering: .relaxed)
    if response.headers["Want-Content-Digest"] != nil { wants.store(true, ordering: .relaxed) }
    let offered = QueryOffer.digests(response.headers)
    if !offered.isEmpty { offers.update { $0 = offered } }
    return response
  }
}
