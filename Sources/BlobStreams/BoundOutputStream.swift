import Blobs
import Foundation

/// The writing end of `BoundStreams`. Any method may be called on any thread, but only one thread may write at a time.
public final class BoundOutputStream: OutputStream, StreamDelegate {
  let end: WritingEnd

  init(_ end: WritingEnd) {
    self.end = end
    super.init(toMemory: ())
    end.events.stream = self
  }

  #if canImport(ObjectiveC)
    /// Creates an end without a reader: every `write` fails. `BoundStreams` creates one with a reader.
    public override convenience init(toMemory: ()) { self.init(WritingEnd.alone) }
  #else
    /// Creates an end without a reader: every `write` fails. `BoundStreams` creates one with a reader.
    public required convenience init(toMemory: ()) { self.init(WritingEnd.alone) }
  #endif

  deinit { end.close(BlobError(.io, "the output stream went away before it was closed")) }

  /// Opens this end. It does not wait for the other one.
  public override func open() { end.open() }

  /// Marks the end of the data: the reader gets the buffered bytes, then the end. A `write` that waits on another
  /// thread returns -1.
  public override func close() { end.close(nil) }

  /// Closes the stream: the reader gets the buffered bytes, then `error`.
  public func fail(_ error: BlobError) { end.close(error) }

  /// Waits for room and returns how many bytes were written; -1 before `open`, after `close`, and once no reader will
  /// read any more.
  public override func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int {
    if maxLength <= 0 { return end.acceptsNothing(maxLength) }
    return end.write(UnsafeRawBufferPointer(start: buffer, count: maxLength))
  }

  /// Writes all of `bytes` and waits as often as necessary: for callbacks that deliver chunks. Throws the error
  /// underlying `streamError`, and `.io` if the stream is not open.
  public func writeAll(_ bytes: UnsafeRawBufferPointer) throws(BlobError) {
    var rest = bytes
    while !rest.isEmpty {
      let count = end.write(rest)
      if count < 0 {
        throw BlobError(underlying: streamError) ?? BlobError(.io, "write to a bound stream that is not open")
      }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
    }
  }

  /// Whether `write` would return without waiting. Also true after an error, which `write` then reports.
  public override var hasSpaceAvailable: Bool { end.hasSpace }

  /// The state of this end. It may change when the other end reads or closes.
  public override var streamStatus: Stream.Status { end.status }

  /// An `NSError` of `BlobError.streamErrorDomain` that contains the underlying error.
  public override var streamError: (any Error)? { end.error }

  /// This stream has no properties.
  public override func property(forKey key: Stream.PropertyKey) -> StreamPropertyValue? { nil }
  /// Returns false, because this stream has no properties.
  public override func setProperty(_ property: StreamPropertyValue?, forKey key: Stream.PropertyKey) -> Bool { false }

  /// A weak reference; nil makes the stream its own delegate, which ignores all events.
  public override var delegate: (any StreamDelegate)? {
    get { end.events.delegate ?? self }
    set { end.events.delegate = newValue === self ? nil : newValue }
  }

  /// Delivers events on the thread of this run loop, in this mode.
  public override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { end.schedule(runLoop, mode) }
  /// Ends the delivery of events in this mode of the run loop. Other modes are left as they are.
  public override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { end.events.remove(runLoop, mode) }
}
