import Blobs

/// Items that wait for one thread, which handles them in order. Adding an item never waits: a limited number is held, and
/// further ones are dropped and counted.
final class BoundedQueue<Item: Sendable>: Sendable {
  /// The next work of the thread.
  struct Batch: Sendable {
    var items: [Item] = []
    /// Items that were dropped since the last batch.
    var dropped = 0
    /// `wake` was called.
    var isWoken = false
    /// Nothing follows but what was added at the same time.
    var isEnding = false
  }
  private struct State {
    var batch = Batch()
    var size = 0
    var hasEnded = false
  }
  private let state = Monitor(State())
  private let most: Int
  private let mostSize: Int

  /// `mostSize`: the size of all items that wait, in bytes.
  init(atMost most: Int, size mostSize: Int) { (self.most, self.mostSize) = (most, mostSize) }

  /// Any thread may call.
  func add(_ item: Item, size: Int) {
    state.update { state in
      if state.batch.items.count >= most || state.size + size > mostSize {
        state.batch.dropped += 1
      } else {
        state.batch.items.append(item)
        state.size += size
      }
    }
  }

  /// Makes `next` return although there is no item.
  func wake() { state.update { $0.batch.isWoken = true } }

  /// Waits until there is something to do. Called by the thread that handles the items.
  func next() -> Batch {
    state.wait { state in
      let batch = state.batch
      guard !batch.items.isEmpty || batch.dropped > 0 || batch.isWoken || batch.isEnding else { return nil }
      state.batch = Batch(isEnding: batch.isEnding)
      state.size = 0
      return batch
    }
  }

  /// Called by the thread after its last batch.
  func end() { state.update { $0.hasEnded = true } }

  /// Blocks until the thread has handled all items, `limit` at most. Returns whether it has.
  func finish(within limit: Duration) -> Bool {
    state.update { $0.batch.isEnding = true }
    return state.wait(atMost: limit) { $0.hasEnded ? true : nil } ?? false
  }
}
