import Blobs
import Foundation

/// Any Foundation input stream as a source. It is sequential, because a stream can be read only once.
///
/// It can be opened only where its last reader stopped. The stream is opened with the first reader and closed when the
/// source and its readers are released; nothing else may read it.
public struct StreamSource: BlobSource {
  private let stream: SharedStream
  private let info: BlobInfo
  public var access: BlobAccess { .sequential }

  /// `length` is the promised length: fewer bytes are `.truncated`, more are `.changed`; nil accepts any length.
  ///
  /// Reading blocks as the stream's `read` does. Cancelling ends a read at once only for the input of `BoundStreams`;
  /// for other streams it takes effect when their `read` returns. A stream that does not wait, but reports that it has
  /// no bytes yet, throws `.unsupported`.
  public init(_ stream: sending InputStream, length: Int64? = nil) {
    self.stream = SharedStream(stream)
    info = BlobInfo(length: length)
  }

  public func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo {
    try cancel.check("look at a stream")
    return info
  }

  public func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try cancel.check("open a stream")
    try stream.open(at: offset)
    return StreamReader(stream, info, cancel)
  }
}

private final class StreamReader: BlobReader {
  let info: BlobInfo
  private let stream: SharedStream
  private let cancel: Cancellation

  init(_ stream: SharedStream, _ info: BlobInfo, _ cancel: Cancellation) {
    self.stream = stream
    self.info = info
    self.cancel = cancel
  }

  deinit { stream.closed() }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(BlobError) -> Int {
    precondition(!buffer.isEmpty)
    try cancel.check("read a stream")
    let offset = stream.position
    let count = try stream.read(into: buffer, cancel)
    try promised.check(count, at: offset)
    return count
  }

  func fileRegion() -> FileRegion? { nil }

  /// Checks, after the last promised byte, that the stream ends.
  func finish() throws(BlobError) {
    guard let length = info.length, stream.position == length else { return }
    let count = try withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { byte throws(BlobError) in
      try stream.read(into: byte, cancel)
    }
    try promised.check(count, at: length)
  }

  private var promised: ExpectedLength { ExpectedLength("a stream", info.length) }
}

/// The stream and its read position.
private final class SharedStream: @unchecked Sendable {
  // `isRead` ensures that one reader at a time uses the stream. `lock` guards `isRead` and `offset`.
  private let lock = NSLock()
  private let stream: InputStream
  private var isRead = false
  private var offset: Int64 = 0
  private var hasEnded = false

  init(_ stream: InputStream) { self.stream = stream }

  deinit { stream.close() }

  var position: Int64 { lock.withLock { offset } }

  func open(at wanted: Int64) throws(BlobError) {
    try take(at: wanted)
    if stream.streamStatus == .notOpen { stream.open() }
  }

  private func take(at wanted: Int64) throws(BlobError) {
    lock.lock()
    defer { lock.unlock() }
    if isRead { throw BlobError(.unsupported, "open a stream: another reader is at it") }
    if wanted != offset { throw BlobError(.outOfRange, "open a stream at byte \(wanted): it is at \(offset)") }
    isRead = true
  }

  func closed() { lock.withLock { isRead = false } }

  func read(into buffer: UnsafeMutableRawBufferPointer, _ cancel: Cancellation) throws(BlobError) -> Int {
    if hasEnded { return 0 }
    let count = try readStream(buffer, cancel)
    if !(0...buffer.count ~= count) {
      throw BlobError(.io, "a stream says it read \(count) bytes into a buffer of \(buffer.count)")
    }
    hasEnded = count == 0
    lock.withLock { offset += Int64(count) }
    return count
  }

  private func readStream(
    _ buffer: UnsafeMutableRawBufferPointer, _ cancel: Cancellation
  ) throws(BlobError) -> Int {
    if let bound = stream as? BoundInputStream { return try bound.end.read(into: buffer, cancel) }
    let count = stream.read(buffer.baseAddress!.assumingMemoryBound(to: UInt8.self), maxLength: buffer.count)
    if count >= 0 { return count }
    let error = stream.streamError.map { $0 as NSError }
    if let error = BlobError(underlying: error) { throw error }
    if let error, error.domain == NSPOSIXErrorDomain, error.code == Int(EAGAIN) {
      throw BlobError(.unsupported, "read a stream at byte \(position): it does not wait for its bytes", errno: EAGAIN)
    }
    // A POSIX error number is passed on, because callers can interpret it.
    let number = error.map { $0.domain == NSPOSIXErrorDomain ? Int32(truncatingIfNeeded: $0.code) : 0 } ?? 0
    let reason = error?.localizedDescription ?? "it gives no reason"
    throw BlobError(.io, "read a stream at byte \(position): \(reason)", errno: number, cause: error)
  }
}
