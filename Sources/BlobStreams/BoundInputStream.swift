import Blobs
import Foundation

/// The reading end of `BoundStreams`. Any method may be called on any thread, but only one thread may read at a time.
public final class BoundInputStream: InputStream, StreamDelegate {
  let end: ReadingEnd

  init(_ end: ReadingEnd) {
    self.end = end
    super.init(data: Data())
    end.events.stream = self
  }

  deinit { end.close() }

  /// Opens this end. It does not wait for the other one.
  public override func open() { end.open() }

  /// Closes the stream: the writer's next `write` fails. A `read` that waits on another thread returns -1.
  public override func close() { end.close() }

  /// Closes the stream; the writer gets `error`.
  public func fail(_ error: BlobError) { end.close(error) }

  /// Waits for bytes and returns those available, up to `maxLength`; 0 at the end. Returns -1 before `open`, after
  /// `close`, and for an error, which follows the bytes written before it.
  public override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    if maxLength <= 0 { return end.acceptsNothing(maxLength) }
    return end.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: maxLength))
  }

  /// Gives access to contiguous buffered bytes without copying; false if there are none. They are valid until the next
  /// `read` or `close`.
  public override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool {
    guard let bytes = end.lend() else { return false }
    buffer.pointee = UnsafeMutablePointer(mutating: bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
    length.pointee = bytes.count
    return true
  }

  /// If the stream is scheduled on a run loop: whether `read` would return without waiting. Otherwise false means the
  /// end only, because URL loading interprets it that way.
  public override var hasBytesAvailable: Bool { end.hasBytes }

  /// The state of this end. It may change when the other end writes or closes.
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
