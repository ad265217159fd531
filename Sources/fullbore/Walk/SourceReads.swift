import BlobUpload
import Blobs
import Synchronization

/// Reads files, and what lies beside them, on threads that may block for ever, as a network drive makes them whose
/// server is gone. A thread that is stuck is given up: it holds up no other read, and no end of the program.
struct SourceReads: Sendable {
  /// How long a read may make no progress.
  var patience = longestRead

  enum Outcome<Value: Sendable>: Sendable {
    case done(Value)
    /// The task was cancelled.
    case cancelled
    /// Nothing came for the time of `patience`.
    case stuck
  }

  /// What is said of a file or folder whose read was given up.
  var complaint: String {
    "nothing could be read there for \(Quantity.text(patience)): is the disk or its server gone?"
  }

  /// Calls `body` on a thread. It should call its second argument now and then, as it gets on. After it was given up, its
  /// `Cancellation` is cancelled and its result is dropped, so it must have no other effect.
  func run<Value: Sendable>(
    _ body: @escaping @Sendable (Cancellation, _ noteProgress: @Sendable () -> Void) -> Value
  ) async -> Outcome<Value> {
    do throws(UploadError) {
      return .done(
        try await readingSource(longest: patience) { cancel, noteRead throws(BlobError) in
          body(cancel) { noteRead(1) }
        })
    } catch {
      return error.side == .cancelled ? .cancelled : .stuck
    }
  }

  /// Calls `read` for each item, in order, on one thread. An item whose read is stuck gets nil, and the others follow on
  /// another thread. nil: the task was cancelled.
  func each<Item: Sendable, Value: Sendable>(
    _ items: [Item], _ read: @escaping @Sendable (Item) -> Value
  ) async -> [Value?]? {
    var values: [Value?] = []
    while values.count < items.count {
      let rest = items[values.count...]
      let log = ReadValues<Value>()
      let outcome = await run { cancel, noteProgress in
        for item in rest where !cancel.isCancelled {
          log.append(read(item))
          noteProgress()
        }
      }
      // Read before nil is added for the stuck item: its thread may still come back and append.
      values += log.take(atMost: rest.count).map { Optional($0) }
      switch outcome {
      case .done: break
      case .cancelled: return nil
      case .stuck: if values.count < items.count { values.append(nil) }
      }
    }
    return values
  }
}

/// What one thread has read so far, and another may take at any time.
private final class ReadValues<Value: Sendable>: Sendable {
  private let values = Mutex<[Value]>([])
  func append(_ value: Value) { values.withLock { $0.append(value) } }
  func take(atMost most: Int) -> ArraySlice<Value> { values.withLock { $0.prefix(most) } }
}

/// Waits for `work`, but no longer than until this task is cancelled: a thread that is blocked for ever must not keep the
/// program from ending. nil: this task was cancelled. `work` runs in a task of its own, which is cancelled then, before
/// `wakeUp` is called.
func untilCancelled<Value: Sendable>(
  wakeUp: @escaping @Sendable () -> Void, _ work: @escaping @Sendable () async -> Value
) async -> Value? {
  let (values, value) = AsyncStream.makeStream(of: Value.self)
  // Not a child of this task, which would have to wait for it.
  let task = Task {
    value.yield(await work())
    value.finish()
  }
  return await withTaskCancellationHandler {
    for await value in values { return value }
    return nil
  } onCancel: {
    task.cancel()
    wakeUp()
  }
}
