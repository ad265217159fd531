/// A bounded pipe from a thread that has bytes to one that wants them: for cameras, encoders, whatever pushes.
///
/// This is the writing end, for one writer at a time; `PipeSource` is the reading end. The bound is the backpressure:
/// no more than `capacity` bytes are ever held. Dropping the pipe without `finish()` is a failure to the reader.
public final class BlobPipe: Sendable {
  let ring: PipeRing

  public init(capacity: Int = 256 << 10) { ring = PipeRing(capacity: capacity) }

  deinit { fail(BlobError(.io, "the pipe's writer went away before it was done")) }

  /// Hands over all of `bytes`, blocking while the pipe is full: not for a cooperative thread.
  /// Throws `.cancelled`, `.io` once nobody can read any more, or what another thread said in `fail`; some of `bytes`
  /// may have gone through.
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

  /// As the blocking `write`, for tasks: suspends while the pipe is full, and throws `.cancelled` when the task is.
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

  /// The last byte has been written. What is still held will be read, then the end.
  public func finish() { ring.end(nil) }

  /// There will be no more bytes: the reader gets those still held, then `error`. Nothing after `finish()`.
  public func fail(_ error: BlobError) { ring.end(error) }
}
