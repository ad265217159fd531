import Blobs
import Synchronization

/// One answer on its way: the transport writes what comes into a bounded pipe, from which a reader takes it.
final class RemoteFetch: Sendable {
  private let ask: RemoteAsk
  private let pipe: BlobPipe
  /// The other end of `pipe`.
  let content: PipeSource
  private let answer = Monitor<Result<RemoteFacts, BlobError>?>(nil)
  private let task: Monitor<Task<Void, Never>?> = Monitor(nil)

  /// `range` nil: of the whole. `version`: the server is asked for a range of this one; where it has another, it gives the
  /// whole of that, or refuses.
  init(_ ask: RemoteAsk, range: String?, of version: RemoteVersion? = nil, capacity: Int) {
    self.ask = ask
    pipe = BlobPipe(capacity: capacity)
    content = PipeSource(pipe)
    var fields = version?.condition ?? [:]
    fields["Range"] = range.map { "bytes=\($0)" }
    // Ended by `stop`, which comes with the last owner; nobody waits for it.
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

  /// Nothing more is wanted: the exchange ends, wherever it is.
  func stop() { task.update { $0?.cancel() } }

  /// Reads a small answer to its end, so that the connection can be used again.
  func drain(_ cancel: Cancellation) throws(BlobError) {
    let reader = try content.open(at: 0, cancel)
    try withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer throws(BlobError) in
      for _ in 0..<64 where try reader.read(into: buffer) == 0 { return }
    }
  }

  /// Waits for the head of the answer.
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

/// Counts the content of an answer, of which there may be no more than its `Content-Range` says.
private final class ReceivedCount: Sendable {
  private let state = Mutex<(count: Int64, most: Int64?)>((0, nil))

  /// Of the answer that begins now. nil: no range, and no limit.
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
