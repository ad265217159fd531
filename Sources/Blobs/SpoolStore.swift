/// The bytes that a spool buffers: the last ones in memory, those before them in a file, if there is one.
final class SpoolStore: @unchecked Sendable {
  // `state` says which offsets are where. `memory` and the file are accessed only under its lock.
  private let memory: UnsafeMutableRawBufferPointer
  private let folder: BytePath?
  private let state = Monitor(State())

  private struct State {
    /// The buffered range is `start..<end`, of which `inMemory..<end` is in memory, each byte at its offset modulo the
    /// capacity.
    var start: Int64 = 0
    var inMemory: Int64 = 0
    var end: Int64 = 0
    var file: SpoolFile?
    var isRead = false
    /// The validator that the first reader saw; later readers must see the same.
    var validator: Validator??
  }

  init(memory: Int, folder: BytePath?) {
    self.memory = .allocate(byteCount: memory, alignment: 16)
    self.folder = folder
  }

  deinit { memory.deallocate() }

  var capacity: Int { memory.count }

  var held: ClosedRange<Int64> { state.update { $0.start...$0.end } }

  func open(at offset: Int64, _ info: BlobInfo) throws(BlobError) {
    try state.update { state throws(BlobError) in
      if state.isRead { throw BlobError(.unsupported, "open a spool: another reader is at it") }
      if !(state.start...state.end ~= offset) {
        throw BlobError(
          .outOfRange, "open a spool at byte \(offset): it holds those from \(state.start) to \(state.end)")
      }
      if let validator = state.validator, validator != info.validator {
        throw BlobError(.changed, "the content changed since its byte 0 was read (byte \(offset) wanted)")
      }
      // An error of the folder is better thrown here, when nothing is lost yet, than when memory is full.
      if let folder, state.validator == nil { try SpoolFile.sweep(folder) }
      state.validator = .some(info.validator)
      state.isRead = true
    }
  }

  /// Returns once no reader is active, or after `patience`.
  func awaitReader(atMost patience: Duration, _ cancel: Cancellation) throws(BlobError) {
    try cancel.whileWaiting(wakeUp: { self.state.update { _ in } }) { () throws(BlobError) in
      _ = state.wait(atMost: patience) { $0.isRead && !cancel.isCancelled ? nil : true }
      try cancel.check("open a spool")
    }
  }

  func closed() { state.update { $0.isRead = false } }

  /// Copies buffered bytes from `offset` on; returns 0 if there are none.
  func copy(from offset: Int64, into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    try state.update { state throws(BlobError) in
      if offset < state.start {
        throw BlobError(.outOfRange, "read a spool at byte \(offset): those before \(state.start) were released")
      }
      if offset == state.end { return 0 }
      if offset < state.inMemory {
        let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: state.inMemory - offset)))
        return try state.file!.read(into: wanted, at: offset)
      }
      let bytes = piece(offset..<min(state.end, offset + Int64(buffer.count)))
      buffer.copyMemory(from: UnsafeRawBufferPointer(bytes))
      return bytes.count
    }
  }

  /// Ensures that up to `wanted` bytes can be appended without losing bytes that must be kept; returns how many.
  func makeRoom(_ wanted: Int) throws(BlobError) -> Int {
    let wanted = min(wanted, memory.count)
    guard let folder else { return wanted }
    try state.update { state throws(BlobError) in
      let excess = state.end - state.inMemory + Int64(wanted - memory.count)
      if excess <= 0 { return }
      if state.file == nil { state.file = try SpoolFile(in: folder, from: state.inMemory) }
      // More than needed now is written, so that many small reads do not cause as many writes.
      let target = min(state.end, state.inMemory + max(excess, Int64(memory.count / 2)))
      while state.inMemory < target {
        let bytes = piece(state.inMemory..<target)
        try state.file!.append(UnsafeRawBufferPointer(bytes))
        state.inMemory += Int64(bytes.count)
      }
    }
    return wanted
  }

  /// Appends the next bytes; at most as many as `makeRoom` returned.
  func append(_ bytes: UnsafeRawBufferPointer) {
    state.update { state in
      var rest = bytes
      while !rest.isEmpty {
        let place = piece(state.end..<state.end + Int64(rest.count))
        place.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(place.count)))
        state.end += Int64(place.count)
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(place.count))
      }
      // Bytes that were overwritten are no longer in memory.
      state.inMemory = max(state.inMemory, state.end - Int64(memory.count))
      if state.file == nil { state.start = max(state.start, state.inMemory) }
    }
  }

  func release(upTo offset: Int64) {
    state.update { state in
      state.start = max(state.start, min(offset, state.end))
      state.inMemory = max(state.inMemory, state.start)
      if state.start == state.inMemory { state.file = nil } else { state.file?.release(upTo: state.start) }
    }
  }

  /// Discards all buffered bytes and restarts at offset 0.
  func rewind() throws(BlobError) {
    try state.update { state throws(BlobError) in
      if state.isRead { throw BlobError(.unsupported, "begin a spool anew: a reader is at it") }
      (state.start, state.inMemory, state.end, state.file) = (0, 0, 0, nil)
    }
  }

  /// The memory of the bytes in `range`, or of the first of them, up to the point where the ring wraps around.
  private func piece(_ range: Range<Int64>) -> UnsafeMutableRawBufferPointer {
    let first = Int(range.lowerBound % Int64(memory.count))
    let count = min(Int(clamping: range.upperBound - range.lowerBound), memory.count - first)
    return UnsafeMutableRawBufferPointer(rebasing: memory[first..<first + count])
  }
}
