import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

extension UploadDestination {
  /// Finds the protocol for uploads to `endpoint`, and the server's limits, with at most one request.
  ///
  /// - `named`: the protocol that the user named: "tus", "resumable" (the IETF's), "dav", "put", "form" or "gcs"; nil:
  ///   the server is queried. tus is chosen if it can create an upload with the first bytes, then resumable uploads if the
  ///   server reports their limits, then WebDAV, and PUT if nothing better is offered.
  /// - `isStream`: the end of the source is not known yet, so a protocol that acknowledges bytes during a request is
  ///   better than tus.
  /// - `checksum`: uploads must carry digests of this algorithm, and the server must verify them; nil: no digests are
  ///   needed.
  /// - `asksForNames`: a server that accepts plain PUT only, and replaces the content of a name, is queried for each
  ///   name first.
  /// - `comparesLater`: existing files will be compared with those at the server. The server is queried whether it
  ///   returns digests, even if nothing else requires a request.
  /// - `form`: how to post forms, if "form" is named.
  /// - `headers`: credentials and further fields of each request. They go to the endpoint's origin only.
  /// - `rereading`: called after a 401 for renewed `headers`, for example with a new token of the same user, on a thread
  ///   that may block. nil, also as its result: the 401 is an error.
  /// - Retries twice if no response arrives, as long as that fails within 10 s, and if the server is unavailable, after
  ///   the delay that it asks for, at most 30 s. Throws with side `.destination` if the server cannot be reached or
  ///   refuses.
  public static func discover(
    _ endpoint: HTTPURL, named: String?, headers: HTTPHeaders = [:], checksum: Digest.Algorithm? = nil,
    form: FormPost = FormPost(), isStream: Bool = false, asksForNames: Bool = false,
    comparesLater: Bool = false, rereading: (@Sendable () -> HTTPHeaders?)? = nil, over transport: any Transport
  ) async throws(UploadError) -> UploadDestination {
    let observed = ObservedTransport(transport)
    let credentials = Credentials(headers, rereading: rereading)
    let context = UploadContext(UploadServer(observed, credentials, at: endpoint, HostState()))
    let target = UploadTarget(endpoint: endpoint, url: endpoint, path: "", length: nil)
    var answer: (any UploadProtocol, PartLimits)
    let tus = Tus(checksum: checksum)
    switch named {
    case "form" where checksum != nil, "dav" where checksum != nil, "gcs" where checksum != nil:
      throw UploadError(
        .giveUp, .destination, "\(endpoint): \(named!) uploads carry no checksums; --verify reads back what arrived")
    case "put":
      var put = PlainPut(checksum: checksum)
      if asksForNames || comparesLater {
        let comparesItself = try await put.comparesItself(target, context)
        put.asksFirst = asksForNames && !comparesItself
      }
      answer = (put, try await patiently { () async throws(UploadError) in try await put.discover(target, context) })
    case "form": answer = (form, form.discover(target, context))
    case "dav":
      let dav = WebDAV()
      answer = (dav, try await patiently { () async throws(UploadError) in try await dav.discover(target, context) })
    case "gcs":
      let storage = CloudStorage()
      answer = (
        storage, try await patiently { () async throws(UploadError) in try await storage.discover(target, context) }
      )
    case "tus":
      answer = try await patiently { () async throws(UploadError) in try await tus.asked(target, context) }
    case "resumable":
      let resumable = IETFResumable(checksum: checksum)
      answer = try await patiently { () async throws(UploadError) in try await resumable.asked(target, context) }
    case nil:
      answer = try await patiently { () async throws(UploadError) in
        try await ask(tus, target, isStream, asksForNames, context)
      }
    default:
      throw UploadError(
        .giveUp, .destination, "\(endpoint): there is no protocol \(named!); name tus, resumable, dav, put, form or gcs"
      )
    }
    var destination = UploadDestination(endpoint: endpoint, dialect: answer.0, limits: answer.1, headers: headers)
    destination.credentials = credentials
    destination.acquaintance.existing.note(tellsDigests: observed.wantsDigests)
    if named != PlainPut().name, named != form.name { destination.acquaintance.noteAnswer() }
    if let why = complaint(ofQueryIn: endpoint, destination.traits) {
      throw UploadError(.giveUp, .destination, "\(endpoint)?…: \(why)", cause: WrongDestination())
    }
    return destination
  }

  private static func ask(
    _ tus: Tus, _ target: UploadTarget, _ isStream: Bool, _ asksForNames: Bool, _ context: UploadContext
  ) async throws(UploadError) -> (any UploadProtocol, PartLimits) {
    let request = HTTPRequest("OPTIONS", target.endpoint)
    let response = try await context.send(request)
    if let refusal = UploadError(asking: request, response) { throw refusal }
    let resumable = IETFResumable(checksum: tus.checksum)
    if isStream, tus.checksum == nil, response.isSuccess, let limits = resumable.limits(from: response.headers) {
      return (resumable.offered, limits)
    }
    if response.isSuccess, let limits = tus.limits(from: response.headers),
      limits.firstPart > 0 || tus.checksum != nil
    {
      try tus.checkOffer(response.headers, at: target.endpoint, context)
      return (tus.offered(response.headers), limits)
    }
    if let checksum = tus.checksum { try ContentDigest.checkOffer(response.headers, checksum, at: target.endpoint) }
    if response.isSuccess, let limits = resumable.limits(from: response.headers) {
      return (resumable.offered, resumable.bounded(limits))
    }
    let dav = WebDAV()
    if tus.checksum == nil, response.isSuccess, WebDAV.isOffered(by: response.headers) {
      return (dav, dav.limits(at: target.endpoint))
    }
    var put = PlainPut(checksum: tus.checksum)
    put.asksFirst = asksForNames
    put.folders = DavFolders()
    return (put, put.limits)
  }

  /// Repeats `ask` according to `retry` while no response arrives. The failure is final once the time spent waiting for
  /// responses exceeds `limit`. A server that never responds therefore costs one timeout of the transport, not three.
  /// Delays between two requests do not count.
  static func patiently<Answer>(
    within limit: Duration = .seconds(10), retry: RetryPolicy = RetryPolicy(retries: 2),
    _ ask: () async throws(UploadError) -> Answer
  ) async throws(UploadError) -> Answer {
    var end = ContinuousClock.now + limit
    var failures = 0
    var random = SystemRandomNumberGenerator()
    while true {
      do {
        return try await ask()
      } catch {
        failures += 1
        var asked: Duration?
        if case .retry(let after) = error.recovery { asked = after }
        guard error.recovery != .giveUp, ContinuousClock.now <= end,
          let wait = retry.delay(after: failures, asked: asked, using: &random)
        else {
          var error = error
          if error.side == .file { error.side = .destination }
          throw error
        }
        end += wait
        do { try await Task.sleep(for: wait) } catch { throw UploadError(.giveUp, .cancelled, "cancelled") }
      }
    }
  }
}

/// Notes whether a response asks for digests: a server that verifies digests also returns them.
private final class ObservedTransport: Transport {
  private let transport: any Transport
  private let wants = Atomic(false)

  init(_ transport: any Transport) { self.transport = transport }

  var wantsDigests: Bool { wants.load(ordering: .relaxed) }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    let response = try await transport.send(request, body: body, on)
    if response.headers["Want-Content-Digest"] != nil { wants.store(true, ordering: .relaxed) }
    return response
  }
}
