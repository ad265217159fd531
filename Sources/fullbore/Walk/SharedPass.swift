import Blobs
import Synchronization

/// One source on its way to several destinations: a thread reads it once, into a buffer from which each destination takes
/// the bytes at its own pace.
///
/// A destination that the others have waited for too long is left behind: it reads the source again, by itself. If the
/// source cannot be read again, all go at the pace of the slowest one.
final class SharedPass: Sendable {
  /// Bytes that the fastest destination may be ahead of the slowest one.
  private static let mostAhead = 512 << 10
  /// How long the others wait for a destination that falls behind, unless they lose little time by that.
  private static let patience = Duration.seconds(2)
  private static let threads = BlockingPool("fullbore-share", threads: 512, patience: .seconds(5))

  /// How a destination that was left behind reads the source.
  enum Rereading: Sendable {
    /// From any offset; `source` makes a source for this destination alone.
    case anywhere(source: @Sendable () throws(BlobError) -> any BlobSource)
    /// From the first byte only, so a destination that has begun is waited for.
    case fromBegin(source: @Sendable () throws(BlobError) -> any BlobSource)
    /// Not at all.
    case never
  }

  let source: any BlobSource
  private let capacity: Int
  private let rereading: Rereading
  private let memory: SharedMemory
  private let state: Monitor<SharedPassState>
  /// Ends the calls of the thread that reads.
  private let stop = Cancellation()
  private let clock = MonotonicClock()
  private let began: Duration

  /// `length`: that of the source, if it is known.
  init(
    _ source: any BlobSource, length: Int64?, _ rereading: Rereading, destinations: Int, _ memory: SharedMemory
  ) {
    self.source = source
    // With one byte more than the source has, its end is found although nobody has taken a byte.
    capacity = Int(min(Int64(Self.mostAhead), length.map { max(0, $0).addingClamped(1) } ?? .max))
    self.rereading = rereading
    self.memory = memory
    began = clock.now
    state = Monitor(SharedPassState(shares: Array(repeating: .init(), count: destinations)))
  }

  /// The source as each destination sees it.
  var sources: [any BlobSource] {
    state.update(waking: .none) { $0.shares.indices }.map { SharedSource(self, $0) }
  }

  /// A source for a destination that was left behind, and needs the bytes from `offset`.
  func own(from offset: Int64) throws(BlobError) -> any BlobSource {
    switch rereading {
    case .anywhere(let make), .fromBegin(let make): return try make()
    case .never: throw lost(offset)
    }
  }

  private func lost(_ offset: Int64) -> BlobError {
    BlobError(.outOfRange, "open a source at byte \(offset): it is read once, and is at another byte")
  }

  /// Begins to take bytes from `offset`, and returns the number of the reader. nil: they are not in the buffer, so the
  /// destination reads by itself. This call blocks.
  func join(
    _ index: Int, at offset: Int64, _ cancel: Cancellation
  ) throws(BlobError) -> (reader: Int, info: BlobInfo)? {
    try cancel.check("open a source")
    let (joins, begins) = try state.update { state throws(BlobError) -> (Bool, Bool) in
      let share = state.shares[index]
      if share.state == .leftBehind { return (false, false) }
      if share.isOpen {
        if source.access == .sequential { throw BlobError(.unsupported, "open a source: another reader is at it") }
        // A reader may be released only after the next one was opened where it has stopped.
        if offset != share.offset { return (false, false) }
      }
      let isInBuffer = offset == state.end || state.buffer != nil && offset >= state.start && offset < state.end
      if !canReread, !isInBuffer { throw lost(offset) }
      if state.opening == nil, !state.isRunning {
        // The first destination decides where the pass begins.
        guard let buffer = memory.buffer(of: capacity, isNeeded: !canReread) else {
          for index in state.shares.indices { state.shares[index].state = .leftBehind }
          return (false, false)
        }
        state.buffer = buffer
        state.end = offset
        for index in state.shares.indices { state.shares[index].offset = offset }
      } else if !isInBuffer {
        state.shares[index].state = .leftBehind
        return (false, false)
      }
      state.shares[index] = SharedPassState.Share(
        state: .taking, offset: offset, reader: share.reader + 1, isOpen: true, waited: share.waited)
      memory.joined(index)
      // After an error, the rest is read by a new reader.
      if case .failure? = state.ending, offset == state.end {
        state.ending = nil
        if case .failure? = state.opening { state.opening = nil }
      }
      let begins = !state.isRunning && state.ending == nil
      if begins { state.isRunning = true }
      return (true, begins)
    }
    if begins { Self.threads.submit { [self] in read() } }
    if !joins { return nil }
    do throws(BlobError) {
      return try waiting(cancel) { () throws(BlobError) in
        try state.wait { state throws(BlobError) -> (Int, BlobInfo)? in
          try cancel.check("open a source")
          guard let info = try state.opening?.get() else { return nil }
          return (state.shares[index].reader, info)
        }
      }
    } catch {
      state.update { $0.shares[index].isOpen = false }
      throw error
    }
  }

  /// Copies the next bytes; 0 at the end. nil: the destination was left behind, or has a later reader, so this reader
  /// goes on by itself. This call blocks.
  func take(
    _ index: Int, _ reader: Int, into buffer: UnsafeMutableRawBufferPointer, _ cancel: Cancellation
  ) throws(BlobError) -> Int? {
    try waiting(cancel) { () throws(BlobError) in
      // The outer optional: whether to wait no longer.
      let count = try state.wait { state throws(BlobError) -> Int?? in
        try cancel.check("read a source")
        let share = state.shares[index]
        if share.state == .leftBehind || share.reader != reader { return .some(nil) }
        if share.offset < state.end, let bytes = state.buffer {
          let count = bytes.copy(from: share.offset, Int(clamping: state.end - share.offset), into: buffer)
          state.shares[index].offset += Int64(count)
          return count
        }
        guard let ending = state.ending else { return nil }
        try ending.get()
        return 0
      }
      state.update { _ in }
      return count
    }
  }

  /// Waits for the result of the check at the source's end, if `offset` is the end. This call blocks.
  func finish(_ index: Int, _ reader: Int, length: Int64?, _ cancel: Cancellation) throws(BlobError) {
    try waiting(cancel) { () throws(BlobError) in
      try state.wait { state throws(BlobError) -> Void? in
        try cancel.check("finish a source")
        let share = state.shares[index]
        // In the middle, the version is checked when the rest is read.
        if share.state == .leftBehind || share.reader != reader { return () }
        if share.offset != length, state.ending == nil { return () }
        return share.offset == state.end || length == share.offset ? try state.ending?.get() : ()
      }
    }
  }

  /// The reader of a destination has ended; another one may follow.
  func closed(_ index: Int, _ reader: Int) {
    state.update { if $0.shares[index].reader == reader { $0.shares[index].isOpen = false } }
  }

  /// The destination needs nothing more from this pass.
  func leave(_ index: Int) {
    let isNeeded = state.update { state in
      state.shares[index].state = .leftBehind
      if !state.isNeeded { state.buffer = nil }
      return state.isNeeded
    }
    if !isNeeded { stop.cancel() }
  }

  private func waiting<Result>(
    _ cancel: Cancellation, _ body: () throws(BlobError) -> Result
  ) throws(BlobError) -> Result {
    try cancel.whileWaiting(wakeUp: { [state] in state.update { _ in } }, body)
  }

  // MARK: The thread that reads

  private var canReread: Bool { if case .never = rereading { false } else { true } }

  private func mayLeave(_ share: SharedPassState.Share) -> Bool {
    switch rereading {
    case .anywhere: share.state != .leftBehind
    case .fromBegin: share.state == .expected
    case .never: false
    }
  }

  private func read() {
    let result: Result<Void, BlobError> = Result { () throws(BlobError) in
      let reader = try open()
      while let room = awaitRoom() {
        let count = try reader.readChecked(into: room.bytes)
        if count == 0 {
          try reader.finish()
          return
        }
        state.update { $0.end += Int64(count) }
      }
    }
    state.update { state in
      state.isRunning = false
      state.ending = result
      if state.opening == nil, case .failure(let error) = result { state.opening = .failure(error) }
    }
    if case .success = result { awaitTheLate() }
  }

  private func open() throws(BlobError) -> any BlobReader {
    let offset = state.update(waking: .none) { $0.end }
    let reader = try source.open(at: offset, stop)
    let info = reader.info
    try state.update { state throws(BlobError) in
      // Bytes of two versions must not follow each other.
      if case .success(let first)? = state.opening, first.validator != info.validator {
        throw BlobError(.changed, "read a source: it changed while it was read")
      }
      state.opening = .success(info)
    }
    return reader
  }

  /// Waits until there is room in the buffer; nil: nobody needs the rest.
  private func awaitRoom() -> SharedBuffer.Room? {
    while true {
      let slowest = state.update(waking: .none) { state in
        state.shares.indices.filter { [start = state.start] in
          state.shares[$0].state != .leftBehind && state.shares[$0].offset == start
        }
      }
      let began = clock.now
      let found = state.wait(atMost: .milliseconds(100)) { state -> SharedBuffer.Room?? in
        guard state.isNeeded, let buffer = state.buffer else { return .some(nil) }
        return buffer.room(from: state.start, to: state.end).map { .some($0) }
      }
      note(wait: clock.now - began, for: slowest)
      if let found { return found }
    }
  }

  /// Leaves those behind for which another destination has waited too long.
  private func note(wait: Duration, for slowest: [Int]) {
    let lasting = clock.now - began
    let late = state.update(waking: .none) { state -> [Int] in
      guard state.shares.contains(where: { $0.state == .taking && $0.offset == state.end }) else { return [] }
      return slowest.filter { index in
        state.shares[index].waited += wait
        let share = state.shares[index]
        // While a destination is late for one source after the other, no time is lost with each of them.
        let patience = share.state == .expected && memory.isLate(index) ? .zero : max(Self.patience, lasting / 8)
        return share.offset < state.end && share.waited > patience && mayLeave(share)
      }
    }
    if !late.isEmpty { leave(late) }
  }

  /// After the end: keeps the bytes for destinations that have not come yet, for a while.
  private func awaitTheLate() {
    let isOver = state.wait(atMost: Self.patience) { $0.isOver ? true : nil }
    if isOver == nil {
      let late = state.update(waking: .none) { state in
        state.shares.indices.filter { mayLeave(state.shares[$0]) && state.shares[$0].state == .expected }
      }
      leave(late)
    }
    state.update { if $0.isOver { $0.buffer = nil } }
  }

  private func leave(_ shares: [Int]) {
    state.update { state in
      for index in shares {
        if state.shares[index].state == .expected { memory.missed(index) }
        state.shares[index].state = .leftBehind
      }
      if state.isOver { state.buffer = nil }
    }
  }
}
