import Platform

/// Reads an open descriptor: standard input, a pipe, a socket. It is sequential, and its length is known only at its
/// end.
///
/// The descriptor is borrowed: it must stay open as long as the source is used, and nothing else may read from it.
public struct DescriptorSource: BlobSource {
  private let stream: DescriptorStream
  public var access: BlobAccess { .sequential }

  /// Reads an open descriptor, which must stay open while the source is in use. The source does not close it.
  public init(_ descriptor: Int32) { stream = DescriptorStream(descriptor) }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at a descriptor")
    return BlobInfo(length: nil)
  }

  /// Opens only where the last reader stopped. Throws `.outOfRange` elsewhere, `.unsupported` while another reader
  /// exists.
  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open a descriptor")
    try stream.open(at: offset)
    return try DescriptorReader(stream, cancel)
  }
}

/// The position in the descriptor. Allows one reader at a time.
private final class DescriptorStream: Sendable {
  private struct State {
    var offset: Int64 = 0
    var isRead = false
  }
  let descriptor: Int32
  private let state = Monitor(State())

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  func open(at offset: Int64) throws(BlobError) {
    try state.update { state throws(BlobError) in
      if state.isRead { throw BlobError(.unsupported, "open descriptor \(descriptor): another reader is at it") }
      if offset != state.offset {
        throw BlobError(
          .outOfRange, "open descriptor \(descriptor) at byte \(offset): it was read up to byte \(state.offset)")
      }
      state.isRead = true
    }
  }

  func closed() { state.update { $0.isRead = false } }

  /// Moves the position forward by `count` bytes.
  func advance(by count: Int) { state.update { $0.offset += Int64(count) } }

  var offset: Int64 { state.update { $0.offset } }
}

private final class DescriptorReader: BlobReader {
  let info = BlobInfo(length: nil)
  private let stream: DescriptorStream
  private let cancel: Cancellation
  private let wakeup: Wakeup

  init(_ stream: DescriptorStream, _ cancel: Cancellation) throws(BlobError) {
    self.stream = stream
    self.cancel = cancel
    do throws(BlobError) {
      wakeup = try Wakeup()
    } catch {
      stream.closed()
      throw error
    }
  }

  deinit { stream.closed() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    while true {
      try waitForBytes()
      let count = Self.read(stream.descriptor, buffer)
      if count >= 0 {
        stream.advance(by: count)
        return count
      }
      if errno != EINTR && errno != EAGAIN { throw systemError(errno, operation) }
    }
  }

  /// `poll` reports the end of the stream, and descriptors that cannot be polled, as readable.
  private func waitForBytes() throws(BlobError) {
    let wakeup = wakeup
    try cancel.whileWaiting(wakeUp: { wakeup.signal() }) { () throws(BlobError) in
      try cancel.check(operation)
      var wanted = [
        pollfd(fd: stream.descriptor, events: Int16(POLLIN), revents: 0),
        pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
      ]
      while poll(&wanted, 2, -1) < 0 {
        if errno != EINTR { throw systemError(errno, operation) }
      }
      try cancel.check(operation)
    }
  }

  private var operation: String { "read descriptor \(stream.descriptor) at byte \(stream.offset)" }

  func fileRegion() -> FileRegion? { nil }
  func finish() {}

  private static func read(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    Platform.read(descriptor, buffer.baseAddress, buffer.count)
  }
}

/// Ends a `poll` from another thread. The wake-up closure retains it too, so that it outlives the reader.
private final class Wakeup: Sendable {
  let descriptor: Int32
  private let other: Int32

  init() throws(BlobError) {
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) != 0 { throw systemError(errno, "make a pipe") }
    (descriptor, other) = (ends[0], ends[1])
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  }

  deinit {
    close(descriptor)
    close(other)
  }

  /// Nobody reads the byte, so every later `poll` returns at once.
  func signal() { _ = withUnsafeBytes(of: UInt8(1)) { write(other, $0.baseAddress, 1) } }
}
