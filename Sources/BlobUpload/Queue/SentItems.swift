import Blobs
import Synchronization

/// Small files that were sent and wait for others, because one request asks for the digests of many. The journal does not
/// have them as done.
///
/// Full batches are taken by the tasks that send files, and the rest after a moment by a task of its own, so that a file is
/// not held up by those that are sent slowly.
final class SentItems: Sendable {
  private struct State {
    var items: [SentItem] = []
    /// The number of tasks that send files.
    var senders: Int
    /// Ends a moment after the first item of a batch was added.
    var moment: Task<Void, Never>?
  }
  /// Files of a request, and those that wait for one or for its response.
  private static let (batch, most) = (64, 256)
  private static let longest = Duration.milliseconds(100)

  private let state: Mutex<State>
  private let room = Gate(most)
  private let clock: any Clock<Duration>
  private let (begun, begin) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

  init(_ clock: any Clock<Duration>, senders: Int) {
    state = Mutex(State(senders: senders))
    self.clock = clock
  }

  /// Waits until one more sent item may be held. Each call needs a call of `leave`, once the item's content is known.
  func enter() async { await room.enter() }

  func leave() { room.leave() }

  func add(_ item: SentItem) {
    // Many open files may be more than the process may have.
    item.work.item.source.closeUntilNeeded()
    let isFirst = state.withLock { state in
      state.items.append(item)
      return state.items.count == 1
    }
    if isFirst { begin.yield() }
  }

  /// Removes and returns the items of a whole batch; empty: there are not so many.
  func takeBatch() -> [SentItem] {
    state.withLock { state in
      if state.items.count < Self.batch { return [] }
      defer { state.items.removeFirst(Self.batch) }
      return Array(state.items.prefix(Self.batch))
    }
  }

  /// Removes and returns all items that wait.
  func takeAll() -> [SentItem] {
    state.withLock { state in
      defer { state.items = [] }
      return state.items
    }
  }

  /// Calls `take` a moment after the first item of each batch was added. Returns when no task sends files any more.
  func eachMoment(_ take: () async -> Void) async {
    for await _ in begun {
      // Not structured, so that the last sender can end it. It fails only if it is cancelled, which ends the moment, too.
      let moment = Task { [clock] in _ = try? await clock.sleep(for: Self.longest) }
      let isOver = state.withLock { state in
        state.moment = moment
        return state.senders == 0
      }
      if isOver { moment.cancel() }
      await withTaskCancellationHandler {
        await moment.value
      } onCancel: {
        moment.cancel()
      }
      await take()
    }
  }

  /// A task sends no more files.
  func endSender() {
    let (isLast, moment) = state.withLock { state in
      state.senders -= 1
      return (state.senders == 0, state.moment)
    }
    if !isLast { return }
    begin.finish()
    moment?.cancel()
  }
}
