import Blobs
import Foundation

#if canImport(ObjectiveC)
  /// What Foundation's properties of streams are.
  public typealias StreamPropertyValue = Any
#else
  /// What Foundation's properties of streams are.
  public typealias StreamPropertyValue = AnyObject
#endif

/// An `InputStream` over any source: for `URLRequest.httpBodyStream`, `XMLParser`, `JSONSerialization`, and whatever
/// else takes a stream.
///
/// **Synchronous**: every method has done its work when it returns, and waits for the source. **Asynchronous**: every
/// method returns at once; the source is opened and read elsewhere, one block ahead, and events tell. `read` before
/// there is something to read returns -1 with `EAGAIN` in `streamError`, which is neither the end nor an error. Not for
/// URL loading: see `checkForURLLoading`.
///
/// A source that is `.invalidated` is opened again at the same byte, a bounded number of times. If its content changed,
/// or it ends early, `read` returns -1 and `streamError` has the source's own error underneath (`BlobError(underlying:)`).
///
/// Any method may be called on any thread. Events come on the threads of the run loops where it is scheduled, and only
/// in those modes; each comes once, however many loops there are. Deallocation closes.
public final class BlobInputStream: InputStream, StreamDelegate {
  let core: StreamCore

  /// `asynchronous`: see above. `block` is what is read at once, in bytes, of a source that asks for caching
  /// (`preferredRead`), and of any source by an asynchronous stream.
  public convenience init(_ source: any BlobSource, asynchronous: Bool = false, block: Int = 128 << 10) {
    self.init(
      StreamCore(
        source, asynchronous ? .asynchronous(on: .fetching) : .synchronous, block: block, reportsErrors: true))
  }

  init(_ core: StreamCore) {
    self.core = core
    super.init(data: Data())
    core.stream = self
  }

  deinit {
    core.close()
    core.retire()
  }

  /// Whether methods return at once, and events tell.
  public var isAsynchronous: Bool { core.isAsynchronous }

  /// False for URL loading and multipart forms, whose machinery takes states for ends: then `streamStatus` stays `.open`
  /// after an error, which `read` and `streamError` tell all the same, and no client is called. The delegate hears all.
  public var reportsErrorsToURLLoading: Bool {
    get { core.locked { core.reportsErrors } }
    set { core.locked { core.reportsErrors = newValue } }
  }

  // MARK: Reading

  public override func open() { core.open() }

  /// Ends a `read` that is waiting on another thread, which returns -1. Nothing comes after it, no event either.
  public override func close() { core.close() }

  /// Bytes read; 0 at the end; -1 before `open`, after `close`, after an error, or where `EAGAIN` is.
  public override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    if maxLength <= 0 { return core.readNothing(maxLength) }
    return core.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: maxLength))
  }

  /// Lends the bytes that are buffered; false if there are none. They stay until the next `read` or `close`.
  public override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool {
    guard let bytes = core.lend() else { return false }
    buffer.pointee = UnsafeMutablePointer(mutating: bytes.baseAddress!.assumingMemoryBound(to: UInt8.self))
    length.pointee = bytes.count
    return true
  }

  /// False only if there is nothing to wait for: at the end, before `open`, after `close`; and as long as an
  /// asynchronous `read` would come too early. True after an error, so that whoever asks reads, and meets it.
  public override var hasBytesAvailable: Bool { core.hasBytes }

  public override var streamStatus: Stream.Status { core.status }

  /// An `NSError` of `BlobError.streamErrorDomain`; also after `close`. `EAGAIN` of the POSIX domain says that a read
  /// came too early.
  public override var streamError: (any Error)? { core.error }

  // MARK: Properties

  /// `.fileCurrentOffsetKey` is the offset of the byte that `read` gives next. Other keys are the source's.
  public override func property(forKey key: Stream.PropertyKey) -> StreamPropertyValue? {
    if key == .fileCurrentOffsetKey { return NSNumber(value: core.locked { core.offset }) }
    return (core.source as? any ConfigurableSource)?.property(forKey: key) as StreamPropertyValue?
  }

  /// `.fileCurrentOffsetKey` takes a whole number from 0 on, before and after `open`; past the end, `read` will fail. What
  /// is refused (false) changes nothing. Other keys are the source's.
  public override func setProperty(_ property: StreamPropertyValue?, forKey key: Stream.PropertyKey) -> Bool {
    guard key == .fileCurrentOffsetKey else {
      return (core.source as? any ConfigurableSource)?.setProperty(property, forKey: key) ?? false
    }
    guard let number = property as? NSNumber, let offset = Int64(exactly: number), offset >= 0 else { return false }
    return core.seek(to: offset)
  }

  // MARK: Events

  /// Held weakly. nil makes the stream its own delegate, which hears nothing. Events that wait in a run loop when a
  /// delegate is set are dropped; a delegate that wants them all is set before the stream is scheduled or opened.
  public override var delegate: (any StreamDelegate)? {
    get {
      let delegate: (any StreamDelegate)? = core.locked { core.delegate }
      return delegate ?? self
    }
    set { core.setDelegate(newValue === self ? nil : newValue) }
  }

  public override func schedule(in runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    core.schedule { $0.hang(in: runLoop, forMode: mode) }
  }

  /// An event that is being handled on another thread goes on.
  public override func remove(from runLoop: RunLoop, forMode mode: RunLoop.Mode) {
    core.bell.remove(from: runLoop, forMode: mode)
  }

  /// Whom to call besides the delegate, instead of whoever was set before; nil, no events, no callback or no context:
  /// nobody. False, and nothing changed, if the context is of another version than 0. Calls nobody itself.
  @discardableResult
  public func setClient(_ client: StreamClient?) -> Bool { core.setClient(client) }
}
