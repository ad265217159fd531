import BlobUpload
import Blobs
import Synchronization

/// Hands what one walk finds to every destination of a push.
///
/// The destination that is done first asks for more. A limited number of sources waits for each of the others; if one has
/// that many, the others wait for it, until it takes some or leaves.
final class SharedWalk: Sendable {
  /// The number of sources that may wait for a destination before the others wait for it, except for the last batch.
  static let most = 16_384

  private struct Queue {
    var batches: [[OpenedSource]] = []
    var count = 0
    var hasLeft = false
    /// The destination waits for a batch.
    var reader: CheckedContinuation<Void, Never>?
  }

  private struct State {
    var queues: [Queue]
    var hasEnded = false
    /// The walk has ended before it had found everything. The tasks of a group are cancelled one after the other, so that a
    /// destination may not be cancelled yet when it learns of the end.
    var isInterrupted = false
    /// The walk waits until more is wanted.
    var writer: CheckedContinuation<Void, Never>?

    var isWanted: Bool {
      let active = queues.filter { !$0.hasLeft }
      return active.contains { $0.batches.isEmpty && $0.reader != nil }
        && active.allSatisfy { $0.count < SharedWalk.most }
    }

    /// The walk, if it must go on or end now.
    mutating func takeWriter() -> CheckedContinuation<Void, Never>? {
      guard isWanted || hasEnded || queues.allSatisfy(\.hasLeft) else { return nil }
      defer { writer = nil }
      return writer
    }
  }
  private let state: Mutex<State>

  init(destinations: Int) { state = Mutex(State(queues: Array(repeating: Queue(), count: destinations))) }

  /// Reads the walk to its end, as the destinations ask for more. Returns early if all have left, or if the task is
  /// cancelled.
  func serve(_ walk: some SourceWalk, _ opener: SourceOpener) async {
    while await isWanted(), let batch = await opener.next(of: walk) {
      let readers = state.withLock { state in
        state.queues.indices.compactMap { index -> CheckedContinuation<Void, Never>? in
          if state.queues[index].hasLeft { return nil }
          state.queues[index].batches.append(state.queues.count == 1 ? batch : batch.map { $0.at(index) })
          state.queues[index].count += batch.count
          defer { state.queues[index].reader = nil }
          return state.queues[index].reader
        }
      }
      for reader in readers { reader.resume() }
    }
    end(isInterrupted: Task.isCancelled)
  }

  /// The next sources for a destination; nil at the end. Throws if the walk or this task is cancelled.
  func next(for index: Int) async throws(UploadError) -> [OpenedSource]? {
    while !Task.isCancelled {
      let (batch, hasEnded, writer) = state.withLock { state in
        if state.queues[index].batches.isEmpty {
          return (nil as [OpenedSource]?, state.hasEnded, nil as CheckedContinuation<Void, Never>?)
        }
        let batch = state.queues[index].batches.removeFirst()
        state.queues[index].count -= batch.count
        return (batch, false, state.takeWriter())
      }
      writer?.resume()
      if let batch { return batch }
      if hasEnded {
        if state.withLock({ $0.isInterrupted }) { break }
        return nil
      }
      await wait(for: index)
    }
    throw UploadError(.giveUp, .cancelled, "interrupted")
  }

  /// The destination takes nothing more.
  func leave(_ index: Int) {
    // The waiting sources are released outside the lock, since that may wake readers of other destinations.
    let (dropped, writer) = state.withLock { state in
      let dropped = state.queues[index].batches
      state.queues[index] = Queue(hasLeft: true)
      return (dropped, state.takeWriter())
    }
    writer?.resume()
    withExtendedLifetime(dropped) {}
  }

  private func wait(for index: Int) async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (goesOn, writer) = state.withLock { state in
          if !state.queues[index].batches.isEmpty || state.hasEnded || Task.isCancelled {
            return (true, nil as CheckedContinuation<Void, Never>?)
          }
          state.queues[index].reader = continuation
          return (false, state.takeWriter())
        }
        writer?.resume()
        if goesOn { continuation.resume() }
      }
    } onCancel: {
      let reader = state.withLock { state in
        defer { state.queues[index].reader = nil }
        return state.queues[index].reader
      }
      reader?.resume()
    }
  }

  /// Waits until more is wanted; false: nobody wants any more.
  private func isWanted() async -> Bool {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goesOn = state.withLock { state in
          state.writer = continuation
          if Task.isCancelled { (state.hasEnded, state.isInterrupted) = (true, true) }
          return state.takeWriter() != nil
        }
        if goesOn { continuation.resume() }
      }
    } onCancel: {
      end(isInterrupted: true)
    }
    return state.withLock { $0.isWanted && !$0.hasEnded }
  }

  private func end(isInterrupted: Bool) {
    let waiting = state.withLock { state in
      if !state.hasEnded { (state.hasEnded, state.isInterrupted) = (true, isInterrupted) }
      let waiting = state.queues.map(\.reader) + [state.writer]
      state.writer = nil
      for index in state.queues.indices { state.queues[index].reader = nil }
      return waiting
    }
    for continuation in waiting { continuation?.resume() }
  }
}
