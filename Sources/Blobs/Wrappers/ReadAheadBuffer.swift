/// The memory between the thread that reads ahead and the thread that consumes. Each works outside the lock: the free
/// range belongs to the first, the filled range to the second.
package final class ReadAheadBuffer: @unchecked Sendable {
  // `state` says which range of `memory` belongs to which thread. `memory` is allocated once, before `opened` returns.
  private var memory = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  private let state = Monitor(State())

  private struct State {
    var start = 0
    var filled = 0
    var opening: Result<BlobInfo, BlobError>?
    /// Set when nothing more is read: at the end, or after an error.
    var ending: Result<Void, BlobError>?
    var isAskedToFinish = false
    var finished: Result<Void, BlobError>?
    var isLeft = false
  }

  private enum Work {
    case read(Range<Int>)
    case finish
  }

  private let freed: @Sendable () -> Void

  /// Each source being read ahead occupies one of these threads.
  static let threads = BlockingPool("read-ahead", threads: 512, patience: .seconds(5))

  /// `freed` is called when the memory is freed: on either thread, and possibly late, if the source blocks the reading
  /// thread.
  package init(freed: @escaping @Sendable () -> Void = {}) { self.freed = freed }

  deinit {
    memory.deallocate()
    freed()
  }

  package func wake() { state.update { _ in } }
  /// The consumer wants nothing more; the reading thread ends.
  package func leave() { state.update { $0.isLeft = true } }

  // MARK: The thread that reads ahead

  /// Hands `reader`, whose next byte has `offset`, to another thread: the caller must not use it any more.
  ///
  /// - `piece`: bytes for one read, at most half the capacity: the thread waits until there is that much room. nil: as
  ///   many as there is room for, up to what the reader prefers, and at least 64 KiB.
  package func read(_ reader: any BlobReader, at offset: Int64, _ capacity: Int, piece: Int? = nil) {
    let handed = ReaderTransfer(reader: reader, offset: offset)
    Self.threads.submit { [self] in serve(capacity, piece) { (handed.reader, handed.offset) } }
  }

  /// `begin` returns a reader and the offset of its next byte.
  func serve(_ capacity: Int, _ piece: Int? = nil, _ begin: () throws(BlobError) -> (any BlobReader, Int64)) {
    do throws(BlobError) {
      let (reader, offset) = try begin()
      let info = reader.info
      let rest = info.length.map { Int(clamping: $0 - offset) } ?? capacity
      // One byte more than the source has, so that its end is found before the consumer asks for it.
      memory = .allocate(byteCount: max(1, min(capacity, rest < capacity ? rest + 1 : capacity)), alignment: 16)
      let least = piece.map { min($0, max(1, memory.count / 2)) } ?? 1
      let piece = piece ?? max(info.preferredRead, 64 << 10)
      state.update { $0.opening = .success(info.with(readAhead: 0)) }
      while let work = next(least) { perform(work, reader, upTo: piece) }
    } catch {
      state.update { state in
        if state.opening == nil { state.opening = .failure(error) }
      }
    }
  }

  /// Waits for work. With less free room than `least` it waits for more: small reads cost too much.
  private func next(_ least: Int) -> Work? {
    state.wait { state -> Work?? in
      if state.isLeft { return .some(nil) }
      if state.isAskedToFinish { return .some(.finish) }
      if state.ending != nil || memory.count - state.filled < least { return nil }
      let first = (state.start + state.filled) % memory.count
      return .some(.read(first..<min(first + memory.count - state.filled, memory.count)))
    }
  }

  private func perform(_ work: Work, _ reader: any BlobReader, upTo piece: Int) {
    switch work {
    case .read(let range):
      do throws(BlobError) {
        let count = try reader.readChecked(into: UnsafeMutableRawBufferPointer(rebasing: memory[range.prefix(piece)]))
        state.update { state in
          state.filled += count
          if count == 0 { state.ending = .success(()) }
        }
      } catch {
        state.update { $0.ending = .failure(error) }
      }
    case .finish:
      // A reader that has thrown is unusable.
      var result = state.update { $0.ending } ?? .success(())
      if case .success = result {
        do throws(BlobError) { try reader.finish() } catch { result = .failure(error) }
      }
      state.update { state in
        state.isAskedToFinish = false
        state.finished = result
      }
    }
  }

  // MARK: The consuming thread

  func opened(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    let result = try state.wait { state throws(BlobError) in
      try cancel.check("open a source to be read ahead")
      return state.opening
    }
    return try result.get()
  }

  func take(into buffer: UnsafeMutableRawBufferPointer, _ cancel: Cancellation) throws(BlobError) -> Int {
    let bytes = try next(buffer.count, cancel)
    if bytes.isEmpty { return 0 }
    buffer.copyMemory(from: bytes)
    release(bytes.count)
    return bytes.count
  }

  /// Returns the next bytes, up to `most`, which stay in place until they are released; empty at the end. `cancel` is
  /// checked after each `wake`.
  package func next(_ most: Int, _ cancel: Cancellation) throws(BlobError) -> UnsafeRawBufferPointer {
    let range: Range<Int> = try state.wait { state throws(BlobError) in
      try cancel.check("read a source that is read ahead")
      if state.filled > 0 { return state.start..<min(state.start + min(state.filled, most), memory.count) }
      guard let ending = state.ending else { return nil }
      try ending.get()
      return 0..<0
    }
    return UnsafeRawBufferPointer(rebasing: memory[range])
  }

  /// Releases the first `count` bytes that `next` returned.
  package func release(_ count: Int) {
    state.update { state in
      state.start = (state.start + count) % memory.count
      state.filled -= count
    }
  }

  func finish(_ cancel: Cancellation) throws(BlobError) {
    state.update { state in
      state.finished = nil
      state.isAskedToFinish = true
    }
    let result = try state.wait { state throws(BlobError) in
      try cancel.check("finish a source that is read ahead")
      return state.finished
    }
    try result.get()
  }
}

/// Transfers a reader from one thread to another. The first thread does not use it again, so this is safe.
private struct ReaderTransfer: @unchecked Sendable {
  let reader: any BlobReader
  /// Offset of the next byte that it returns.
  let offset: Int64
}

/// A reader that may start to read ahead by itself. It must not if another reader already does, since the work would be
/// done twice.
package protocol ReadAheadAware: BlobReader {
  /// Informs the reader that another thread reads it ahead of use.
  func willBeReadAhead()
}
