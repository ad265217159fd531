import Blobs
import Synchronization

/// A source as one destination sees it while several read it at the same time.
final class SharedSource: BlobSource {
  private let pass: SharedPass
  private let index: Int
  /// The source for this destination alone, after it was left behind.
  private let own = Mutex<(any BlobSource)?>(nil)

  init(_ pass: SharedPass, _ index: Int) { (self.pass, self.index) = (pass, index) }

  deinit { pass.leave(index) }

  var access: BlobAccess { pass.source.access }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try (own.withLock { $0 } ?? pass.source).info(cancel)
  }

  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    if let (number, info) = try pass.join(index, at: offset, cancel) {
      return SharedReader(self, pass, index, number, info, at: offset, cancel)
    }
    return try openAlone(at: offset, cancel)
  }

  fileprivate func openAlone(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    let source = try own.withLock { own throws(BlobError) -> any BlobSource in
      if let own { return own }
      let source = try pass.own(from: offset)
      own = source
      return source
    }
    return try source.open(at: offset, cancel)
  }
}

private final class SharedReader: BlobReader {
  let info: BlobInfo
  private let source: SharedSource
  private let pass: SharedPass
  private let index: Int
  private let number: Int
  private let cancel: Cancellation
  private var offset: Int64
  /// Reads for this destination alone, after it was left behind.
  private var alone: (any BlobReader)?

  init(
    _ source: SharedSource, _ pass: SharedPass, _ index: Int, _ number: Int, _ info: BlobInfo, at offset: Int64,
    _ cancel: Cancellation
  ) {
    (self.source, self.pass, self.index, self.number) = (source, pass, index, number)
    (self.info, self.offset, self.cancel) = (info, offset, cancel)
  }

  deinit { pass.closed(index, number) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    if alone == nil {
      if let count = try pass.take(index, number, into: buffer, cancel) {
        offset += Int64(count)
        return count
      }
      let reader = try source.openAlone(at: offset, cancel)
      guard reader.info.validator == info.validator else {
        throw BlobError(.changed, "read a source: it changed while it was read")
      }
      alone = reader
    }
    return try alone?.read(into: buffer) ?? 0
  }

  func fileRegion() -> FileRegion? { nil }

  func finish() throws(BlobError) {
    if let alone { return try alone.finish() }
    try pass.finish(index, number, length: info.length, cancel)
  }
}

/// The memory of all sources that are read for several destinations, and which destinations are late.
final class SharedMemory: Sendable {
  private struct State {
    var free = 8 << 20
    var late: Set<Int> = []
  }
  private let state = Mutex(State())

  /// nil: there is no room. `isNeeded`: there is always room for a source that cannot be read otherwise.
  func buffer(of capacity: Int, isNeeded: Bool) -> SharedBuffer? {
    let hasRoom = state.withLock { state in
      guard state.free >= capacity || isNeeded else { return false }
      state.free -= capacity
      return true
    }
    return hasRoom ? SharedBuffer(capacity) { [self] in state.withLock { $0.free += capacity } } : nil
  }

  /// The destination was left behind before it had begun.
  func missed(_ destination: Int) { state.withLock { _ = $0.late.insert(destination) } }

  /// The destination has begun in time.
  func joined(_ destination: Int) { state.withLock { _ = $0.late.remove(destination) } }

  func isLate(_ destination: Int) -> Bool { state.withLock { $0.late.contains(destination) } }
}

/// The last bytes of a source that was read for several destinations, by their offsets.
final class SharedBuffer: @unchecked Sendable {
  /// The bytes that the reading thread may write. They stay allocated as long as this value exists.
  struct Room {
    let buffer: SharedBuffer
    let bytes: UnsafeMutableRawBufferPointer
  }

  // `SharedPass` says which range belongs to the thread that reads, and which one to those that take.
  private let memory: UnsafeMutableRawBufferPointer
  private let freed: @Sendable () -> Void

  init(_ capacity: Int, freed: @escaping @Sendable () -> Void) {
    memory = .allocate(byteCount: capacity, alignment: 16)
    self.freed = freed
  }

  deinit {
    memory.deallocate()
    freed()
  }

  /// Room for the bytes after `end`, if those from `start` are still to be taken; nil: there is none.
  func room(from start: Int64, to end: Int64) -> Room? {
    let count = memory.count - Int(end - start)
    if count <= 0 { return nil }
    let first = Int(end % Int64(memory.count))
    return Room(
      buffer: self, bytes: UnsafeMutableRawBufferPointer(rebasing: memory[first..<min(first + count, memory.count)]))
  }

  /// Copies at most `count` bytes from `offset`, and returns how many.
  func copy(from offset: Int64, _ count: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    let first = Int(offset % Int64(memory.count))
    let bytes = memory[first..<min(first + min(count, target.count), memory.count)]
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes))
    return bytes.count
  }
}
