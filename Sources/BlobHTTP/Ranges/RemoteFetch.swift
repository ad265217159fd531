import Blobs
import Synchronization

/// One response in progress: the transport writes the content into a bounded pipe, from which a reader reads it.
final class RemoteFetch: Sendable {
  private let ask: RemoteRequest
  private let pipe: BlobPipe
  /// The reading end of `pipe`.
  let content: PipeSource
  private let answer = Monitor<Result<RemoteFacts, BlobError>?>(nil)
  private let task: Monitor<Task<Void, Never>?> = Monitor(nil)

  /// - `range`: nil requests the whole file.
  /// - `version`: the range must be of this version. If the server has another one, it sends that version as a whole,
  ///   or refuses.
  init(_ ask: RemoteRequest, range: String?, of version: RemoteVersion? = nil, capacity: Int) {
    self.ask = ask
    pipe = BlobPipe(capacity: capacity)
    content = PipeSource(pipe)
    var fields = version?.condition ?? [:]
    fields["Range"] = range.map { "bytes=\($0)" }
    // `stop` cancels the task, at the latest when the last owner is deinitialized; nothing awaits it.
    let task = Task { [ask, pipe, answer, fields] in
      let count = ReceivedCount()
      let exchange = Exchange(
        received: { bytes throws(BlobError) in
          try count.add(bytes.count, ask.url)
          try pipe.write(bytes)
        },
        began: { head throws(BlobError) in
          guard let facts = RemoteFacts(head, of: ask.url, isOfRange: range != nil) else {
            throw RemoteFacts.problem(head, of: ask.url)
          }
          count.limit(to: facts.rangeLength)
          answer.update { $0 = .success(facts) }
        })
      do throws(TransportError) {
        let response = try await ask.get(fields, exchange)
        let isTold = response.isSuccess || response.status == 416
        let facts = isTold ? RemoteFacts(response.head, of: ask.url, isOfRange: range != nil) : nil
        let result =
          facts.map { .success($0) }
          ?? Result<RemoteFacts, BlobError>.failure(
            response.isSuccess ? RemoteFacts.problem(response.head, of: ask.url) : ask.refusal(response))
        answer.update { answer in if answer == nil { answer = result } }
        if case .failure(let error) = result { pipe.fail(error) } else { pipe.finish() }
      } catch {
        let failure = ask.failure(error)
        answer.update { answer in if answer == nil { answer = .failure(failure) } }
        pipe.fail(failure)
      }
    }
    self.task.update { $0 = task }
  }

  deinit { stop() }

  /// Cancels the exchange at any stage.
  func stop() { task.update { $0?.cancel() } }

  /// Reads a small response to its end, so that the connection can be reused.
  func drain(_ cancel: Cancellation) throws(BlobError) {
    let reader = try content.open(at: 0, cancel)
    try withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer throws(BlobError) in
      for _ in 0..<64 where try reader.read(into: buffer) == 0 { return }
    }
  }

  /// Waits for the head of the response.
  func facts(_ cancel: Cancellation) throws(BlobError) -> RemoteFacts {
    let result: Result<RemoteFacts, BlobError> = try cancel.whileWaiting(wakeUp: { [answer] in answer.update { _ in } })
    {
      () throws(BlobError) in
      try answer.wait { answer throws(BlobError) in
        try cancel.check("wait for \(ask.url)")
        return answer
      }
    }
    return try result.get()
  }
}

/// Counts the content of a response and throws if it exceeds the length in `Content-Range`.
private final class ReceivedCount: Sendable {
  private let state = Mutex<(count: Int64, most: Int64?)>((0, nil))

  /// Starts counting for the response that begins now. nil: the response is not of a range and has no limit.
  func limit(to most: Int64?) { state.withLock { $0 = (0, most) } }

  func add(_ more: Int, _ url: HTTPURL) throws(BlobError) {
    let (count, most) = state.withLock { state in
      state.count = state.count.addingClamped(Int64(more))
      return state
    }
    guard let most, count > most else { return }
    throw BlobError(.io, "GET \(url): its answer 206 has more content than the \(most) bytes of its Content-Range")
  }
}
