/// The concatenated buffers of an asynchronous sequence. It is a sequential source, which can be opened only where its
/// last reader stopped.
///
/// The next buffer is requested only once the previous one is in the pipe between the sequence and the reader, so at
/// most `capacity` bytes and one buffer are in memory. The iteration begins when the source is first opened, in a task
/// of its own, and is cancelled when the source and its readers are released.
public struct AsyncSequenceSource: BlobSource {
  private let pipe: PipeSource
  private let feeding: Feeding
  public var access: BlobAccess { .sequential }

  /// `length` is the promised length: fewer bytes are `.truncated`, more are `.changed`; nil accepts any length. An
  /// error from the sequence is thrown after the bytes before it. An error that is not a `BlobError` is thrown as the
  /// cause of an `.io`.
  public init<Buffers: AsyncSequence & Sendable>(
    _ buffers: Buffers, length: Int64? = nil, capacity: Int = 256 << 10
  ) where Buffers.Element: Collection<UInt8> {
    let pipe = BlobPipe(capacity: capacity)
    let feeding = Feeding { await Self.feed(pipe, from: buffers) }
    self.feeding = feeding
    self.pipe = PipeSource(pipe, length: length, whenGone: feeding.cancel)
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { try pipe.info(cancel) }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let reader = try pipe.open(at: offset, cancel)
    feeding.start()
    return reader
  }

  private static func feed<Buffers: AsyncSequence>(_ pipe: BlobPipe, from buffers: Buffers) async
  where Buffers.Element: Collection<UInt8> {
    do {
      for try await buffer in buffers { try await pipe.write(buffer) }
      // Some sequences end without an error when their task is cancelled.
      try Task.checkCancellation()
      pipe.finish()
    } catch let error as BlobError {
      pipe.fail(error)
    } catch is CancellationError {
      pipe.fail(BlobError(.cancelled, "read an asynchronous sequence: it was cancelled"))
    } catch {
      pipe.fail(BlobError(.io, "read an asynchronous sequence: \(error)", cause: error))
    }
  }
}

/// The task that writes the bytes to the pipe. It is unstructured because it outlives the call that opens the source.
private final class Feeding: Sendable {
  private struct State {
    var task: Task<Void, Never>?
  }
  private let state = Monitor(State())
  private let work: @Sendable () async -> Void

  init(_ work: @escaping @Sendable () async -> Void) { self.work = work }

  func start() {
    state.update { [work] state in
      if state.task == nil { state.task = Task { await work() } }
    }
  }

  @Sendable func cancel() { state.update { $0.task }?.cancel() }
}
