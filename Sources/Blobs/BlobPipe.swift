/// A bounded pipe from a thread that produces bytes to one that consumes them: for cameras, encoders and other push
/// APIs.
///
/// This is the writing end, for one writer at a time; `PipeSource` is the reading end. The bound gives backpressure:
/// the pipe never buffers more than `capacity` bytes. If the pipe is released without `finish()`, the reader gets an
/// error.
public final class BlobPipe: Sendable {
  let ring: PipeRing

  /// Creates a pipe that buffers up to `capacity` bytes. A writer waits while it is full.
  public init(capacity: Int = 256 << 10) { ring = PipeRing(capacity: capacity) }

  deinit { fail(BlobError(.io, "the pipe's writer went away before it was done")) }

  /// Writes all of `bytes` and blocks while the pipe is full, so do not call it on a cooperative thread. Throws
  /// `.cancelled`, `.io` once no reader can read any more, or the error that another thread passed to `fail`. After a
  /// throw, some of `bytes` may have been written.
  public func write(_ bytes: UnsafeRawBufferPointer, _ cancel: Cancellation? = nil) throws(BlobError) {
    if let cancel {
      return try cancel.whileWaiting(wakeUp: ring.wake) { () throws(BlobError) in try put(bytes, cancel) }
    }
    try put(bytes, nil)
  }

  private func put(_ bytes: UnsafeRawBufferPointer, _ cancel: Cancellation?) throws(BlobError) {
    var rest = bytes
    while !rest.isEmpty {
      let room = try ring.waitForRoom(cancel)
      let count = min(room.count, rest.count)
      room.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest.prefix(count)))
      ring.wrote(count)
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
  }

  /// Like the blocking `write`, for tasks: suspends while the pipe is full, and throws `.cancelled` when the task is
  /// cancelled.
  public func write(_ bytes: some Collection<UInt8>) async throws(BlobError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      if Task.isCancelled { throw BlobError(.cancelled, "write to a pipe: cancelled") }
      guard let room = try ring.room() else {
        await ring.writable()
        continue
      }
      let piece = rest.prefix(room.count)
      room.copyBytes(from: piece)
      ring.wrote(piece.count)
      rest = rest[piece.endIndex...]
    }
  }

  /// Marks the end after the last write. The reader first gets the bytes still buffered, then the end.
  public func finish() { ring.end(nil) }

  /// Ends the pipe with an error: the reader first gets the bytes still buffered, then `error`. Does nothing after
  /// `finish()`.
  public func fail(_ error: BlobError) { ring.end(error) }
}
