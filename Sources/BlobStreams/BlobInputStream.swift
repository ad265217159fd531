import Blobs
import Foundation

#if canImport(ObjectiveC)
  /// The type of stream properties in Foundation.
  public typealias StreamPropertyValue = Any
#else
  /// The type of stream properties in Foundation.
  public typealias StreamPropertyValue = AnyObject
#endif

/// An `InputStream` over any source: for `URLRequest.httpBodyStream`, `XMLParser`, `JSONSerialization` and other APIs
/// that accept a stream.
///
/// **Synchronous**: every method blocks until its work is done. **Asynchronous**: every method returns at once; the
/// source is opened and read on other threads, one block ahead, and events report progress. A `read` before bytes are
/// available returns -1 with `EAGAIN` in `streamError`, which is neither the end nor an error. Do not use asynchronous
/// streams for URL loading: see `checkForURLLoading`.
///
/// A source that throws `.invalidated` is opened again at the same byte, a bounded number of times. If its content
/// changed or it ends early, `read` returns -1, and `streamError` contains the source's error
/// (`BlobError(underlying:)`).
///
/// Any method may be called on any thread. Events arrive on the threads of the run loops where the stream is scheduled,
/// and only in those modes; each event arrives once, however many run loops there are. Deallocation closes the stream.
public final class BlobInputStream: InputStream, StreamDelegate {
  let core: StreamCore

  /// `asynchronous`: see above. `block`: bytes per read of a source that asks for buffering (`preferredRead`); an
  /// asynchronous stream uses it for any source.
  public convenience init(_ source: any BlobSource, asynchronous: Bool = false, block: Int = 128 << 10) {
    self.init(
      StreamCore(
        source, asynchronous ? .asynchronous(on: .fetching) : .synchronous, block: block, reportsErrors: true))
  }

  init(_ core: StreamCore) {
    self.core = core
    super.init(data: Data())
    core.receivers.stream = self
  }

  deinit {
    core.close()
    core.retire()
  }

  /// Whether methods return at once and events report progress.
  public var isAsynchronous: Bool { core.isAsynchronous }

  /// Set to false for URL loading and multipart forms, which take an error state for the end of the body. Then
  /// `streamStatus` stays `.open` after an error and no client is called; `read` and `streamError` still report the
  /// error. The delegate receives all events in either case.
  public var reportsErrorsToURLLoading: Bool {
    get { core.locked { core.receivers.reportsErrors } }
    set { core.locked { core.receivers.reportsErrors = newValue } }
  }

  // MARK: Reading

  /// Opens the stream. A synchronous stream may wait here for its source; an asynchronous one returns at once.
  public override func open() { core.open() }

  /// Ends a `read` that waits on another thread; that `read` returns -1. Afterwards no bytes or events follow.
  public override func close() { core.close() }

  /// Returns the number of bytes read; 0 at the end; -1 before `open`, after `close`, after an error, or with `EAGAIN`.
  public override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    if maxLength <= 0 { return core.readNothing(maxLength) }
    return core.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: maxLength))
  }

  /// Gives access to the buffered bytes without copying; false if there are none. They are valid until the next `read`
  /// or `close`.
  public override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool {
    guard let bytes = core.lend() else { return false }
    buffer.pointee = UnsafeMutablePointer(mutating: bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
    length.pointee = bytes.count
    return true
  }

  /// False at the end, before `open`, after `close`, and while a `read` of an asynchronous stream would find no bytes
  /// yet. True after an error, so that the caller reads and gets the error.
  public override var hasBytesAvailable: Bool { core.hasBytes }

  /// The state of the stream. It may change on another thread at any time.
  public override var streamStatus: Stream.Status { core.status }

  /// An `NSError` of `BlobError.streamErrorDomain`; it is also available after `close`. `EAGAIN` of the POSIX domain
  /// means that a read came before bytes were available.
  public override var streamError: (any Error)? { core.error }

  // MARK: Properties

  /// `.fileCurrentOffsetKey` is the offset of the byte that `read` returns next. Other keys are the source's.
  public override func property(forKey key: Stream.PropertyKey) -> StreamPropertyValue? {
    if key == .fileCurrentOffsetKey { return NSNumber(value: core.locked { core.position.offset }) }
    return (core.source as? any ConfigurableSource)?.property(forKey: key) as StreamPropertyValue?
  }

  /// `.fileCurrentOffsetKey` accepts a whole number from 0 on, before and after `open`; if it is past the end, `read`
  /// will fail. A refused value (false) changes nothing. Other keys are the source's.
  public override func setProperty(_ property: StreamPropertyValue?, forKey key: Stream.PropertyKey) -> Bool {
    guard key == .fileCurrentOffsetKey else {
      return (core.source as? any ConfigurableSource)?.setProperty(property, forKey: key) ?? false
    }
    guard let number = property as? NSNumber, let offset = Int64(exactly: number), offset >= 0 else { return false }
    return core.seek(to: offset)
  }

  // MARK: Events

  /// A weak reference. nil makes the stream its own delegate, which ignores all events. Setting a delegate drops events
  /// that are pending in a run loop. To receive all events, set the delegate before scheduling or opening the stream.
  public override var delegate: (any StreamDelegate)? {
    get {
      let delegate: (any StreamDelegate)? = core.locked { core.receivers.delegate }
      return delegate ?? self
    }
    set { core.setDelegate(newValue === self ? nil : newValue) }
  }

  /// Delivers events on the thread of this run loop, in this mode. A stream may have several run loops and modes.
  public override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    core.schedule { $0.add(in: runLoop, forMode: mode) }
  }

  /// An event that is being handled on another thread is not interrupted.
  public override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    core.signal.remove(from: runLoop, forMode: mode)
  }

  /// Sets the client that is called besides the delegate, and replaces an earlier client. nil, or a client without
  /// events, callback or context, only removes the earlier one. Returns false and changes nothing if the context's
  /// version is not 0. Does not call the client.
  @discardableResult
  public func setClient(_ client: StreamClient?) -> Bool { core.setClient(client) }
}
