import BlobHTTP
import BlobStreams
import Blobs
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// One request and its response, with its own URLSession.
///
/// The first outcome counts: of the session, of the source, or a cancellation. The waiting caller resumes at once;
/// operations that still block end later.
final class SessionExchange: NSObject, @unchecked Sendable {
  typealias Outcome = Result<HTTPResponse, TransportError>
  /// Body bytes handed to the connection, and the total; nil if the total is not known.
  typealias Progress = @Sendable (Int64, Int64?) -> Void

  private let name: String
  private let exchange: Exchange
  private let progress: Progress?
  private let request: URLRequest
  private let body: BlobSlice?
  private let cancellation = Cancellation()

  // `lock` guards the following variables.
  private let lock = NSLock()
  private var waiter: CheckedContinuation<Outcome, Never>?
  private var outcome: Outcome?
  private var session: URLSession?
  private var sentBody = StreamedBody()
  private var response = ReceivedResponse()

  /// Many threads, because a source may block for a long time before it has its first byte.
  static let threads = BlockingPool("urlsession", threads: 256, patience: .seconds(10))

  init(_ request: URLRequest, named name: String, _ body: BlobSlice?, _ exchange: Exchange, _ progress: Progress?) {
    self.progress = progress
    self.request = request
    self.name = name
    self.body = body
    self.exchange = exchange
  }

  func run(_ configuration: URLSessionConfiguration) async -> Outcome {
    await withTaskCancellationHandler {
      if body == nil {
        // A request without a body opens no source, so it cannot block, and must not wait for the threads that open the
        // sources of other requests.
        start(configuration)
      } else {
        // A source that cannot be interrupted keeps the thread.
        _ = await Self.threads.runUntilCancelled { _ in self.start(configuration) }
      }
      return await withCheckedContinuation { waiter in
        let outcome = lock.withLock {
          if self.outcome == nil { self.waiter = waiter }
          return self.outcome
        }
        if let outcome { waiter.resume(returning: outcome) }
      }
    } onCancel: {
      end(.failure(TransportError(.cancelled, "\(name): cancelled")))
    }
  }

  /// Makes the request once its body has begun: neither its time limit nor a thread of URLSession's waits for the source.
  private func start(_ configuration: URLSessionConfiguration) {
    do throws(BlobError) {
      guard let request = try requestWithBody() else { return }
      let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
      let task = session.dataTask(with: request)
      let isOver = lock.withLock {
        self.session = session
        return outcome != nil
      }
      if isOver { session.invalidateAndCancel() } else { task.resume() }
    } catch {
      end(.failure(failed(error)))
    }
  }

  /// nil: the exchange has ended meanwhile.
  private func requestWithBody() throws(BlobError) -> URLRequest? {
    var request = request
    guard let body else { return request }
    let slice = try body.pinned(cancellation)
    let source = BegunSource(SlicedSource(slice))
    if slice.length == 0 {
      // An empty body is not read, so the source's version is checked here.
      try slice.open(cancellation).finish()
    } else {
      try source.begin(cancellation)
    }
    let stream = BlobInputStream.forURLLoading(source)
    try request.setBody(stream, length: slice.length)
    return lock.withLock {
      if outcome != nil { return nil }
      sentBody = StreamedBody(stream: stream, source: source, length: slice.length)
      return request
    }
  }

  // MARK: Events of the session

  /// The callbacks for `ExchangeProtocol`, which calls them without a session.
  var direct: Exchange {
    var direct = Exchange(sent: { self.sent(Int64($0)) }, interim: exchange.interim, received: exchange.received)
    direct.trailers = exchange.trailers
    return direct
  }

  func sent(_ count: Int64) {
    exchange.sent(Int(count))
    let body = lock.withLock {
      // The session may have asked for a rest that begins after the end of the body.
      sentBody.given = sentBody.given.addingClamped(count)
      return sentBody
    }
    progress?(body.given, body.length)
  }

  func answered(_ head: HTTPHead) { lock.withLock { response.answer.head = head } }

  /// Receives content of the response. An error of the receiver ends the exchange.
  func take(_ data: Data) {
    let (head, isFirst) = lock.withLock { (response.answer.head, response.noteContent()) }
    guard let streams = 200..<300 ~= head.status ? exchange.received : nil else {
      return lock.withLock { response.keep(data) }
    }
    data.withUnsafeBytes { bytes in
      do throws(BlobError) {
        if isFirst { try exchange.began?(head) }
        try streams(bytes)
      } catch {
        end(.failure(failed(error)))
      }
    }
  }

  /// A new stream over the body from `offset` on, for a session that sends the body or its rest again; nil if the source
  /// cannot be read again.
  func newStream(from offset: Int64 = 0) -> BlobInputStream? {
    guard body?.source.access == .random else { return nil }
    return lock.withLock { outcome == nil ? sentBody.reopen(from: offset) : nil }
  }

  func completed(_ error: (any Error)?) {
    let (response, sourceError) = lock.withLock {
      (self.response.answer, BlobError(underlying: sentBody.stream?.streamError))
    }
    if let sourceError { return end(.failure(failed(sourceError))) }
    if let early = earlySuccess(response.head) { return end(.failure(early)) }
    // An error response may arrive before the whole body is sent, after which the connection may break.
    if error == nil || response.status >= 300 { return end(.success(response)) }
    end(.failure(TransportError(error!, name)))
  }

  /// The error for a premature success response. On Linux `SocketTransport` has already checked this.
  private func earlySuccess(_ head: HTTPHead) -> TransportError? {
    guard body != nil else { return nil }
    let body = lock.withLock { sentBody }
    return head.earlySuccess(to: name, from: "the server", sent: body.given, of: body.length, isWhole: body.isSent)
  }

  private func failed(_ error: BlobError) -> TransportError {
    TransportError(error.code == .cancelled ? .cancelled : .source, "\(name): \(error.message)", cause: error)
  }

  // MARK: The end

  private func end(_ outcome: Outcome) {
    lock.lock()
    if self.outcome != nil { return lock.unlock() }
    self.outcome = outcome
    let (waiter, body, session) = (waiter, sentBody, session)
    self.waiter = nil
    lock.unlock()
    // The session may not have opened the stream, and the caller may open the source again.
    body.source?.releaseBegun()
    waiter?.resume(returning: outcome)
    cancellation.cancel()
    body.stream?.close()
    guard let session else { return }
    // Invalidating a session waits for its queue, which may be blocked in a source that cannot be interrupted.
    SystemThread.start("urlsession-end") { session.invalidateAndCancel() }
  }
}

/// The body of the request of an exchange; empty until its stream was made.
private struct StreamedBody {
  var stream: BlobInputStream?
  /// The source that `stream`, and each stream that replaces it, reads.
  var source: BegunSource?
  /// Bytes of the body; nil if the length is known only at its end.
  var length: Int64?
  /// Body bytes handed to the connection, as the sum of the session's steps: on Linux the session's totals run ahead of
  /// them.
  var given: Int64 = 0

  /// A body of unknown length was read to its end unless the stream is still open.
  var isSent: Bool {
    if let length { return given >= length }
    let status = stream?.streamStatus
    return status != .open && status != .reading
  }

  mutating func reopen(from offset: Int64) -> BlobInputStream? {
    guard let fresh = stream?.reopened(from: offset) else { return nil }
    (stream, given) = (fresh, offset)
    return fresh
  }
}

/// The part of the response that has arrived.
private struct ReceivedResponse {
  var answer = HTTPResponse(head: HTTPHead(status: 0, headers: [:]))
  private var hasBegun = false

  /// Notes content that has arrived. Returns whether it is the first of a success.
  mutating func noteContent() -> Bool {
    defer { if answer.isSuccess { hasBegun = true } }
    return !hasBegun
  }

  /// Keeps the beginning of the content.
  mutating func keep(_ data: Data) { answer.body += data.prefix((1 << 20) - answer.body.count) }
}

extension BlobSlice {
  /// A copy with length and version, if the source knows them. This call blocks.
  fileprivate func pinned(_ cancel: Cancellation) throws(BlobError) -> BlobSlice {
    let info = try source.info(cancel)
    let rest = info.length.map { $0 - start }
    if let rest, rest < 0 { throw BlobError(.outOfRange, "open at byte \(start): the source has \(rest + start)") }
    return BlobSlice(source, start: start, length: length ?? rest, validator: validator ?? info.validator)
  }
}
