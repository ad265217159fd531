import BlobUpload
import Blobs
import Synchronization

/// Reads files and the files beside them on threads that may block forever, for example on a network drive without its
/// server. A thread that hangs is abandoned, so that it delays neither other reads nor the end of the program.
struct SourceReads: Sendable {
  /// How long a read may make no progress.
  var patience = longestRead

  enum Outcome<Value: Sendable>: Sendable {
    case done(Value)
    /// The task was cancelled.
    case cancelled
    /// There was no progress for `patience`.
    case stuck
  }

  /// The message for a file or folder whose read was abandoned.
  var complaint: String {
    "nothing could be read there for \(Quantity.text(patience)): is the disk or its server gone?"
  }

  /// Calls `body` on a thread. `body` should call `noteProgress` regularly. After it was abandoned, its `Cancellation`
  /// is cancelled and its result is dropped, so it must have no other effect.
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

  /// Calls `read` for each item, in order, on one thread. An item whose read hangs gets nil, and another thread
  /// continues with the following items. Returns nil if the task was cancelled.
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
      // Take the values before adding nil for the item that hangs, because its thread may still return and append.
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

/// Values that one thread appends and another may take at any time.
private final class ReadValues<Value: Sendable>: Sendable {
  private let values = Mutex<[Value]>([])
  func append(_ value: Value) { values.withLock { $0.append(value) } }
  func take(atMost most: Int) -> ArraySlice<Value> { values.withLock { $0.prefix(most) } }
}

/// Waits for `work` until it ends or this task is cancelled: a thread that blocks forever must not keep the program
/// from ending. Returns nil if this task was cancelled. `work` runs in its own task, which is then cancelled before
/// `wakeUp` is called.
func untilCancelled<Value: Sendable>(
  wakeUp: @escaping @Sendable () -> Void, _ work: @escaping @Sendable () async -> Value
) async -> Value? {
  let (values, value) = AsyncStream.makeStream(of: Value.self)
  // Unstructured, because a task must wait for its child tasks.
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
