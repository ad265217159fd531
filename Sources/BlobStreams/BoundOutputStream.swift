import Blobs
import Foundation

/// The end of `BoundStreams` to write to. Any method may be called on any thread; one writes at a time.
public final class BoundOutputStream: OutputStream, StreamDelegate {
  let end: WritingEnd

  init(_ end: WritingEnd) {
    self.end = end
    super.init(toMemory: ())
    end.events.stream = self
  }

  #if canImport(ObjectiveC)
    public override convenience init(toMemory: ()) { self.init(WritingEnd.alone) }
  #else
    /// An end that nobody reads: every `write` fails. `BoundStreams` makes one with a reader.
    public required convenience init(toMemory: ()) { self.init(WritingEnd.alone) }
  #endif

  deinit { end.close(BlobError(.io, "the output stream went away before it was closed")) }

  public override func open() { end.open() }

  /// All is written: the reader gets what is left, then the end. Ends a `write` that waits on another thread, which
  /// returns -1.
  public override func close() { end.close(nil) }

  /// Closes; the reader gets what is left, then `error`.
  public func fail(_ error: BlobError) { end.close(error) }

  /// Waits for room, and returns how many bytes there was room for; -1 before `open`, after `close`, and when nobody will
  /// read any more.
  public override func write(_ buffer: UnsafePointer<UInt8>, maxLength: Int) -> Int {
    if maxLength <= 0 { return end.acceptsNothing(maxLength) }
    return end.write(UnsafeRawBufferPointer(start: buffer, count: maxLength))
  }

  /// Writes all of `bytes`, waiting as often as it takes: for callbacks that hand over chunks. Throws what `streamError`
  /// has underneath, and `.io` where the stream is not open.
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

  /// Whether `write` would not wait; true also after an error, which `write` then meets.
  public override var hasSpaceAvailable: Bool { end.hasSpace }

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
