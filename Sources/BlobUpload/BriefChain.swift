import BlobCrypto
import BlobHTTP
import Blobs
import Synchronization

/// Items that go in one request each, one after the other: what follows an answer is done on the thread that has it, down
/// to the next request. No task is made, switched to or woken for them, which took a third of all work for a small file.
///
/// It knows success alone. Any other answer, or error, goes with its item to the `UploadQueue`, as the answer to the
/// first request it makes for that, or to be asked for anew: there is one way only in which things go wrong. Of one task.
final class BriefChain<Observer: UploadObserver>: Sendable {
  typealias Work = UploadQueue.Claimed
  typealias Answer = Result<HTTPResponse, TransportError>

  private struct State {
    var waiter: UnsafeContinuation<Void, Never>?
    /// What the waiter finds.
    var rest: (UploadQueue, Work)?
    var exchange: (any StartableExchange)?
    var isCancelled = false
  }
  private let queue: UploadQueue
  private let channel: BatchChannel<Work>
  private let observer: Observer
  private let dialect: any OneRequestProtocol
  private let transport: any StartingTransport
  private let acquaintance: Acquaintance
  private let secrets: SecretWords
  /// A success to a PUT is believed only once the server was seen to store what it is sent.
  private let doubtsSuccess: Bool
  /// Bytes.
  private let longest: Int64
  private let state = Mutex(State())

  /// nil: nothing goes this way.
  init?(_ queue: UploadQueue, _ channel: BatchChannel<Work>, _ observer: Observer) {
    let destination = queue.uploader.destination
    guard !queue.verify, destination.limits.firstPart > 0,
      let dialect = destination.dialect as? any OneRequestProtocol,
      let transport = queue.uploader.transport as? any StartingTransport
    else { return nil }
    self.queue = queue
    self.channel = channel
    self.observer = observer
    self.dialect = dialect
    self.transport = transport
    acquaintance = destination.acquaintance
    secrets = SecretWords(destination.headers)
    doubtsSuccess = dialect is PlainPut
    longest = min(queue.largeFrom, queue.uploader.parallelFrom - 1, destination.limits.total ?? .max)
  }

  /// Sends `work` and what follows it in the channel. Returns the first that takes more, and the queue that is to handle
  /// it; nil once nothing follows for now.
  func rest(from work: Work) async -> (UploadQueue, Work)? {
    if !takes(work) { return (queue, work) }
    await withTaskCancellationHandler {
      await withUnsafeContinuation { waiter in
        state.withLock { $0.waiter = waiter }
        begin(work)
      }
    } onCancel: {
      let exchange = state.withLock { state -> (any StartableExchange)? in
        state.isCancelled = true
        return state.exchange
      }
      exchange?.cancel()
    }
    return state.withLock { $0.rest.take() }
  }

  /// Whether an item is new, and of a kind that one request may be enough for.
  private func takes(_ work: Work) -> Bool {
    guard case .fresh = work.claim, work.progress == nil, let length = work.item.info.length,
      !acquaintance.existing.isAskedFirst(length, work.item.target)
    else { return false }
    // As many as get through to the server, as far as is known by now.
    let most = min(longest, queue.uploader.destination.currentLimits.firstPart)
    return length <= most && work.item.source.access == .random
  }

  private func begin(_ work: Work) {
    guard takes(work), case .fresh(let id) = work.claim else { return end((queue, work)) }
    let body = BlobSlice(
      source(of: work.item, id), length: work.item.info.length, validator: work.item.info.validator)
    guard var request = request(for: work, body) else { return end((queue, work)) }
    let progress = Progress(totals: queue.totals)
    var on = Exchange(sent: { [acquaintance] count in
      acquaintance.noteReached()
      progress.advance(by: Int64(count))
    })
    let signature = queue.uploader.destination.traits.signature
    var prepared: PreparedRequest?
    if let prepare = dialect.preparation(of: request, body) {
      let kept = PreparedRequest()
      on.prepare = { request, cancel throws(BlobError) in
        try prepare(&request, cancel)
        signature?(&request)
        kept.set(request)
      }
      prepared = kept
    } else {
      signature?(&request)
    }
    guard let exchange = transport.exchange(request, body: body, on), isUnderWay(exchange) else {
      return end((queue, work))
    }
    observer.started(work.item, progress)
    exchange.start { [self, request, prepared] answer in
      take(answer, to: prepared?.get() ?? request, work, id, progress)
    }
  }

  /// The source as it is sent: summed where the journal wants to know the content again.
  private func source(of item: UploadItem, _ id: Int64) -> any BlobSource {
    let source = Uploader.prepared(item.source, item.info)
    if !item.info.wantsTrace { return source }
    let key = Poly1305.newKey()
    return TracedSource(source, from: 0, key: key, queue.journal.sending(id, from: 0, key: key))
  }

  private func request(for work: Work, _ body: BlobSlice) -> HTTPRequest? {
    let destination = queue.uploader.destination
    guard var request = dialect.request(bringing: work.item.target, body),
      // Credentials and files go to no other origin.
      request.url.isAtServer(of: destination.endpoint)
    else { return nil }
    for field in destination.headers.fields { request.headers.add(field.name, field.value) }
    return request
  }

  /// false: all is to end.
  private func isUnderWay(_ exchange: any StartableExchange) -> Bool {
    state.withLock { state in
      if state.isCancelled { return false }
      state.exchange = exchange
      return true
    }
  }

  private func take(_ answer: Answer, to request: HTTPRequest, _ work: Work, _ id: Int64, _ progress: Progress) {
    guard case .success(let response) = answer, let result = stored(response, to: request, work, progress) else {
      return handOver(work, progress, answer)
    }
    acquaintance.note(response)
    acquaintance.noteStored()
    acquaintance.existing.note(wasThere: result.wasThere)
    let length = work.item.info.length ?? 0
    if result.wasThere { progress.resume(at: length) } else { progress.settle(at: length) }
    queue.journal.done(
      id, result, keepsChecksums: work.item.info.wantsTrace, replaces: !result.wasThere)
    observer.ended(work.item, progress, .sent(result, from: progress.resumed))
    if let next = channel.poll() { begin(next) } else { end(nil) }
  }

  /// nil: the answer does not say that all is stored, or it cannot be so, or the server must be asked about it.
  private func stored(
    _ response: HTTPResponse, to request: HTTPRequest, _ work: Work, _ progress: Progress
  ) -> UploadResult? {
    let item = work.item
    guard let result = dialect.result(of: response, to: request, for: item.target),
      !doubtsSuccess || acquaintance.putAnswers.isTrusted(after: request, response),
      !secrets.isOne(inLocationOf: response)
    else { return nil }
    let check = StoredCheck(target: item.target, length: item.info.length, sent: progress.sent)
    do throws(UploadError) { try check.check(result) } catch { return nil }
    return result
  }

  private func handOver(_ work: Work, _ progress: Progress, _ answer: Answer) {
    var queue = queue
    var isPlain = true
    if case .success(let response) = answer { isPlain = dialect.isPlain(response) }
    // What was sent is counted anew: as that of the request which gets this answer, or when it is sent again.
    let sent = progress.sent
    if isPlain { progress.takeBack(sent) } else { progress.advance(by: -sent) }
    if isPlain { queue.uploader.transport = AnsweredTransport(answer, sent, then: queue.uploader.transport) }
    end((queue, Work(work.item, work.claim, progress, looks: work.looks)))
  }

  private func end(_ rest: (UploadQueue, Work)?) {
    let waiter = state.withLock { state in
      // What it was sent from is closed.
      state.exchange = nil
      state.rest = rest
      return state.waiter.take()
    }
    waiter?.resume()
  }
}

/// A request as it was sent, with what was read of its body for it.
private final class PreparedRequest: Sendable {
  private let request = Mutex<HTTPRequest?>(nil)
  func get() -> HTTPRequest? { request.withLock { $0 } }
  func set(_ new: HTTPRequest) { request.withLock { $0 = new } }
}

/// Gives the first request the answer that it has had already; the others are sent.
private final class AnsweredTransport: Transport {
  private let answer: Mutex<Result<HTTPResponse, TransportError>?>
  private let sent: Int64
  private let transport: any Transport

  /// `sent`: bytes of the body that were handed to the connection for that answer.
  init(_ answer: Result<HTTPResponse, TransportError>, _ sent: Int64, then transport: any Transport) {
    self.answer = Mutex(answer)
    self.sent = sent
    self.transport = transport
  }

  func send(_ request: HTTPRequest, body: BlobSlice?, _ on: Exchange) async throws(TransportError) -> HTTPResponse {
    if let answer = answer.withLock({ $0.take() }) {
      on.sent(Int(sent))
      return try answer.get()
    }
    return try await transport.send(request, body: body, on)
  }
}
