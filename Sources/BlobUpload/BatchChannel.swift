import Synchronization

/// Hands batches from one task to many, a few batches ahead at the most.
final class BatchChannel<Element: Sendable>: Sendable {
  private struct State {
    var buffer: [Element] = []  // reversed: the next one is the last
    var further: [[Element]] = []
    var isFinished = false
    var readers: [CheckedContinuation<Element?, Never>] = []
    var writer: CheckedContinuation<Void, Never>?

    /// Pairs waiting readers with what is there; with nil at the end.
    mutating func serve() -> [(CheckedContinuation<Element?, Never>, Element?)] {
      var served: [(CheckedContinuation<Element?, Never>, Element?)] = []
      while let reader = readers.first {
        while buffer.isEmpty, !further.isEmpty { buffer = further.removeFirst().reversed() }
        if buffer.isEmpty, !isFinished { break }
        served.append((reader, buffer.popLast()))
        readers.removeFirst()
      }
      return served
    }
  }
  private let state = Mutex(State())
  private let ahead: Int

  init(ahead: Int) { self.ahead = ahead }

  /// Waits until there is room, then hands `batch` over. For one writer.
  func send(_ batch: [Element]) async {
    await withCheckedContinuation { continuation in
      let (readers, canGoOn) = state.withLock { state in
        if !state.isFinished { state.further.append(batch) }
        let readers = state.serve()
        let canGoOn = state.further.count <= ahead || state.isFinished
        if !canGoOn { state.writer = continuation }
        return (readers, canGoOn)
      }
      for (reader, element) in readers { reader.resume(returning: element) }
      if canGoOn { continuation.resume() }
    }
  }

  /// The next element; nil once all is read.
  func next() async -> Element? {
    await withCheckedContinuation { continuation in
      let (readers, writer) = state.withLock { state in
        state.readers.append(continuation)
        let readers = state.serve()
        guard state.further.count <= ahead else { return (readers, nil as CheckedContinuation<Void, Never>?) }
        defer { state.writer = nil }
        return (readers, state.writer)
      }
      for (reader, element) in readers { reader.resume(returning: element) }
      writer?.resume()
    }
  }

  /// No more comes. `dropping`: what is not read yet is thrown away.
  func finish(dropping: Bool = false) {
    let (readers, writer) = state.withLock { state in
      state.isFinished = true
      if dropping { (state.buffer, state.further) = ([], []) }
      defer { state.writer = nil }
      return (state.serve(), state.writer)
    }
    for (reader, element) in readers { reader.resume(returning: element) }
    writer?.resume()
  }
}
