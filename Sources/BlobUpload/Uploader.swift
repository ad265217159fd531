import BlobHTTP
import Blobs
import Synchronization

/// Brings one source to where it should go: plans parts, sends what the server lacks, writes receipts to the journal.
///
/// It alone retries, and switches on `UploadError.recovery` alone. The server is the truth: after any doubt it is asked
/// what it holds, and sending goes on from there.
public struct Uploader: Sendable {
  public var destination: UploadDestination
  public var transport: any Transport
  /// Where sessions are remembered; nil: nothing outlives this process.
  public var journal: Journal?
  public var retry: RetryPolicy
  /// Bytes of a part, where the user wants it; nil: as the dialect likes.
  public var partSize: Int64?
  public var clock: any Clock<Duration> = ContinuousClock()

  public init(
    _ destination: UploadDestination, transport: any Transport, journal: Journal? = nil,
    retry: RetryPolicy = RetryPolicy(), partSize: Int64? = nil
  ) {
    self.destination = destination
    self.transport = transport
    self.journal = journal
    self.retry = retry
    self.partSize = partSize
  }

  /// Uploads `source`, which must be the version that `info` describes, and returns when the server has it whole.
  ///
  /// - `entry`: its row in the journal; nil: it is not journaled. `session`: what an earlier run left there.
  /// - Throws when nothing more can be done here; what the server holds stays there and can be resumed, unless
  ///   the source changed. Cancelling the task throws with side `.cancelled`.
  public func upload(
    _ source: any BlobSource, _ info: BlobInfo, to target: UploadTarget, entry: Int64? = nil,
    resuming session: UploadSession? = nil, progress: Progress = Progress()
  ) async throws(UploadError) -> UploadResult {
    if let length = info.length, let most = destination.limits.total, length > most {
      throw UploadError(.giveUp, .file, "\(target.path): \(length) bytes, and the server takes \(most) at most")
    }
    var run = UploadRun(self, source, info, target, entry, session, progress)
    return try await run.run()
  }

  /// Deletes what an earlier run left on the server; a failure to do so is no one's loss, since it expires there.
  public func discard(_ session: UploadSession) async {
    try? await destination.dialect.abort(session, context())
  }

  /// Whether the server still has what was uploaded earlier.
  public func isThere(_ target: UploadTarget, location: String?) async throws(UploadError) -> Bool {
    try await destination.dialect.isThere(target, location: location, context())
  }

  func context(
    opened: @escaping @Sendable (UploadSession) -> Void = { _ in },
    sent: @escaping @Sendable (Int) -> Void = { _ in }
  ) -> UploadContext {
    UploadContext(
      transport: transport, headers: destination.headers, origin: destination.endpoint.origin,
      answered: { [acquaintance = destination.acquaintance] in acquaintance.note($0) }, opened: opened, sent: sent)
  }
}

/// A place that takes uploads, and what is known of it.
public struct UploadDestination: Sendable {
  /// The URL as given.
  public var endpoint: HTTPURL
  public var dialect: any UploadProtocol
  public var limits: PartLimits
  /// Credentials and the user's own fields; they go to the endpoint's origin and to no other.
  public var headers: HTTPHeaders
  let acquaintance = Acquaintance()

  public init(endpoint: HTTPURL, dialect: any UploadProtocol, limits: PartLimits, headers: HTTPHeaders = [:]) {
    self.endpoint = endpoint
    self.dialect = dialect
    self.limits = limits
    self.headers = headers
  }
}

extension UploadDestination {
  /// Where the source goes that is called `path` below the endpoint's folder (the endpoint up to its last slash).
  public func target(
    _ path: BytePath, length: Int64?, contentType: String = "application/octet-stream", overwrite: Bool = false
  ) -> UploadTarget {
    UploadTarget(
      endpoint: endpoint, url: endpoint.folder.appending(pathBytes: path.bytes), path: path, length: length,
      contentType: contentType, overwrite: overwrite)
  }
}

/// Whether a destination has ever answered, or taken anything: it decides how long a failure is worth repeating.
final class Acquaintance: Sendable {
  private let answered = Atomic(false)
  private let accepted = Atomic(false)

  var hasAnswered: Bool { answered.load(ordering: .relaxed) }
  var hasAccepted: Bool { accepted.load(ordering: .relaxed) }

  func noteAnswer() { if !hasAnswered { answered.store(true, ordering: .relaxed) } }

  func note(_ response: HTTPResponse) {
    noteAnswer()
    if response.isSuccess, !hasAccepted { accepted.store(true, ordering: .relaxed) }
  }
}

/// One upload under way: the loop of asking, sending and recovering.
private struct UploadRun {
  private let uploader: Uploader
  private let source: any BlobSource
  private let info: BlobInfo
  private let target: UploadTarget
  private let entry: Int64?
  private let progress: Progress
  private let plan: PartPlan
  private let context: UploadContext
  private var session: UploadSession?
  /// What the server holds; nil: it must be asked.
  private var offset: Int64?
  /// The furthest the server has acknowledged in this session.
  private var best: Int64 = 0
  private var failures = 0
  private var part = 1
  private var isResuming: Bool

  init(
    _ uploader: Uploader, _ source: any BlobSource, _ info: BlobInfo, _ target: UploadTarget, _ entry: Int64?,
    _ session: UploadSession?, _ progress: Progress
  ) {
    self.uploader = uploader
    self.source = source
    self.info = info
    self.target = target
    self.entry = entry
    self.session = session
    isResuming = session != nil
    self.progress = progress
    plan = PartPlan(length: info.length, wanted: uploader.partSize, limits: uploader.destination.limits)
    let journal = uploader.journal
    context = uploader.context(
      opened: { session in if let entry { journal?.opened(entry, session) } },
      sent: { progress.advance(by: Int64($0)) })
  }

  private var dialect: any UploadProtocol { uploader.destination.dialect }

  mutating func run() async throws(UploadError) -> UploadResult {
    while true {
      do {
        if let result = try await step() {
          progress.settle(at: info.length ?? progress.sent)
          return result
        }
      } catch {
        try await recover(from: error)
      }
    }
  }

  /// One request: create, ask, send or complete, whichever comes next. Returns the result once there is one.
  private mutating func step() async throws(UploadError) -> UploadResult? {
    guard let session else { return try await create() }
    guard let offset else { return try take(await dialect.held(by: session, context)) }
    guard let next = plan.part(from: offset, number: part) else {
      return try await dialect.complete(session, [], context)
    }
    switch try await dialect.send(next, slice(next), to: session, context) {
    case .finished(let result): return result
    case .receipt(let receipt, let session):
      if receipt.held == 0 {
        throw UploadError(.resync, .destination, "\(target.url): the server kept nothing of what was sent")
      }
      advance(to: receipt.start + receipt.held, session)
      part += 1
      return nil
    }
  }

  private mutating func create() async throws(UploadError) -> UploadResult? {
    var first: (part: Part, body: BlobSlice)?
    let most = uploader.destination.limits.firstPart
    if info.length ?? .max <= most {
      let whole = Part(number: 1, start: 0, length: info.length, isLast: true)
      first = (whole, slice(whole))
    }
    let held = try await dialect.create(target, first: first, context)
    let result = try take(held)
    // The session must outlive us before anything is sent into it.
    if result == nil, entry != nil { try await uploader.journal?.flushed() }
    return result
  }

  private func slice(_ part: Part) -> BlobSlice {
    BlobSlice(source, start: part.start, length: part.length, validator: info.validator)
  }

  private mutating func take(_ held: Held) throws(UploadError) -> UploadResult? {
    switch held {
    case .finished(let result):
      if isResuming { progress.resume(at: info.length ?? 0) }
      return result
    case .upTo(let offset, let session):
      if isResuming { progress.resume(at: offset) }
      isResuming = false
      advance(to: offset, session)
      return nil
    case .parts:
      throw UploadError(
        .giveUp, .destination, "\(target.url): \(dialect.name) keeps numbered parts, which is not done yet")
    }
  }

  private mutating func advance(to offset: Int64, _ session: UploadSession) {
    self.session = session
    self.offset = offset
    if offset > best {
      best = offset
      failures = 0
    }
    progress.settle(at: offset)
    if let entry { uploader.journal?.acknowledged(entry, offset) }
  }

  /// Sets the stage for the next step and waits, or throws for good.
  private mutating func recover(from error: UploadError) async throws(UploadError) {
    if error.recovery == .giveUp {
      var error = error
      // Who refuses everything from the first file on, refuses us.
      if error.status == 403, !uploader.destination.acquaintance.hasAccepted { error.side = .destination }
      throw error
    }
    failures += 1
    var asked: Duration?
    switch error.recovery {
    case .retry(let after):
      asked = after
      offset = nil
    case .resync: offset = nil
    case .restart:
      if session == nil { throw error }
      session = nil
      isResuming = false
      (offset, best) = (nil, 0)
      if let entry { uploader.journal?.restarted(entry) }
    case .giveUp: break
    }
    if session == nil { progress.settle(at: 0) }
    var random = SystemRandomNumberGenerator()
    guard let wait = policy(for: error).delay(after: failures, asked: asked, using: &random) else {
      throw failures == 1 ? error : error.after(failures)
    }
    do {
      try await uploader.clock.sleep(for: wait)
    } catch {
      throw UploadError(.giveUp, .cancelled, "\(target.path): cancelled")
    }
  }

  /// A place that never answered is most likely a wrong one: say so soon.
  private func policy(for error: UploadError) -> RetryPolicy {
    var policy = uploader.retry
    if error.isUnreachable, !uploader.destination.acquaintance.hasAnswered { policy.retries = min(policy.retries, 1) }
    return policy
  }
}

extension UploadError {
  /// No connection could be made at all.
  public var isUnreachable: Bool {
    guard let code = (cause as? TransportError)?.code else { return false }
    return code == .resolve || code == .connect
  }

  fileprivate func after(_ failures: Int) -> UploadError {
    var error = self
    error.recovery = .giveUp
    error.message += " (gave up after \(failures) failures in a row)"
    return error
  }
}
