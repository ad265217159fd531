import Blobs
import Foundation

/// The end of `BoundStreams` to read from. Any method may be called on any thread; one reads at a time.
public final class BoundInputStream: InputStream, StreamDelegate {
  let end: ReadingEnd

  init(_ end: ReadingEnd) {
    self.end = end
    super.init(data: Data())
    end.events.stream = self
  }

  deinit { end.close() }

  public override func open() { end.open() }

  /// The writer's next `write` fails. Ends a `read` that waits on another thread, which returns -1.
  public override func close() { end.close() }

  /// Closes; what the writer gets to see is `error`.
  public func fail(_ error: BlobError) { end.close(error) }

  /// Waits for bytes; gives what is there, and 0 at the end. -1 before `open`, after `close`, and for an error, which
  /// comes after the bytes that were written before it.
  public override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    if maxLength <= 0 { return end.acceptsNothing(maxLength) }
    return end.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: maxLength))
  }

  /// Lends the bytes that are there, or the first of them; false if there are none. They stay until the next `read` or
  /// `close`.
  public override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool {
    guard let bytes = end.lend() else { return false }
    buffer.pointee = UnsafeMutablePointer(mutating: bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
    length.pointee = bytes.count
    return true
  }

  /// Where the stream is scheduled on a run loop: whether `read` would not wait. Elsewhere false means the end, and only
  /// that: URL loading takes it so.
  public override var hasBytesAvailable: Bool { end.hasBytes }

  public override var streamStatus: Stream.Status { end.status }

  /// An `NSError` of `BlobError.streamErrorDomain`, with the error underneath.
  public override var streamError: (any Error)? { end.error }

  /// There are no properties.
  public override func property(forKey key: Stream.PropertyKey) -> StreamPropertyValue? { nil }
  public override func setProperty(_ property: StreamPropertyValue?, forKey key: Stream.PropertyKey) -> Bool { false }

  /// Held weakly; nil makes the stream its own delegate, which hears nothing.
  public override var delegate: (any StreamDelegate)? {
    get { end.events.delegate ?? self }
    set { end.events.delegate = newValue === self ? nil : newValue }
  }

  public override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) { end.schedule(runLoop, mode) }
  public override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) { end.events.remove(runLoop, mode) }
}
