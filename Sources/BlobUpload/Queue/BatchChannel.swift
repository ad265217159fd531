import Synchronization

/// Passes batches of elements from one task to many, and buffers at most a few batches.
package final class BatchChannel<Element: Sendable>: Sendable {
  private struct State {
    var buffer: [Element] = []  // reversed: the next element is the last one
    var further: [[Element]] = []
    var isFinished = false
    var readers: [CheckedContinuation<Element?, Never>] = []
    var writer: CheckedContinuation<Void, Never>?

    /// Pairs waiting readers with available elements, or with nil after the end.
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

    /// Returns the next element for a new reader, and the writer to resume if there is space again. While readers wait,
    /// the channel is empty.
    mutating func take(_ ahead: Int) -> (Element?, CheckedContinuation<Void, Never>?) {
      while buffer.isEmpty, !further.isEmpty { buffer = further.removeFirst().reversed() }
      guard let element = buffer.popLast() else { return (nil, nil) }
      guard further.count <= ahead else { return (element, nil) }
      defer { writer = nil }
      return (element, writer)
    }
  }
  private let state = Mutex(State())
  private let ahead: Int

  package init(ahead: Int) { self.ahead = ahead }

  /// Appends `batch` and waits until there is space for the next one. Only one task may write.
  /// false: the channel is finished, and the batch was not appended.
  package func send(_ batch: [Element]) async -> Bool {
    var isTaken = true
    await withCheckedContinuation { continuation in
      let (readers, canGoOn) = state.withLock { state in
        isTaken = !state.isFinished
        if isTaken { state.further.append(batch) }
        let readers = state.serve()
        let canGoOn = state.further.count <= ahead || state.isFinished
        if !canGoOn { state.writer = continuation }
        return (readers, canGoOn)
      }
      for (reader, element) in readers { reader.resume(returning: element) }
      if canGoOn { continuation.resume() }
    }
    return isTaken
  }

  /// Returns the next element, waiting if none is available; nil once the channel is finished and all elements were
  /// read.
  package func next() async -> Element? {
    let (element, waiting) = state.withLock { $0.take(ahead) }
    waiting?.resume()
    if let element { return element }
    return await withCheckedContinuation { continuation in
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

  /// Ends the channel; readers still receive the buffered elements.
  package func finish() { _ = finish(dropping: false) }

  /// Ends the channel, and returns the buffered elements, which readers no longer receive.
  package func drop() -> [Element] { finish(dropping: true) }

  private func finish(dropping: Bool) -> [Element] {
    let (readers, writer, dropped) = state.withLock { state in
      state.isFinished = true
      let dropped = dropping ? state.buffer.reversed() + state.further.flatMap { $0 } : []
      if dropping { (state.buffer, state.further) = ([], []) }
      defer { state.writer = nil }
      return (state.serve(), state.writer, dropped)
    }
    for (reader, element) in readers { reader.resume(returning: element) }
    writer?.resume()
    return dropped
  }
}
