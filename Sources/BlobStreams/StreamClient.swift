import Foundation

/// Receives a stream's events besides its delegate: the Swift equivalent of the arguments of `CFReadStreamSetClient`.
public struct StreamClient: Sendable {
  /// Called on the thread of the run loop, with the context's `info`.
  public typealias Callback = @Sendable (BlobInputStream, Stream.Event, UnsafeMutableRawPointer?) -> Void

  /// The values that are passed to each callback. The context is copied. `retain` is called when the client is set, and
  /// `release` once the client was removed or replaced, or the stream was deallocated.
  public struct Context: @unchecked Sendable {
    // `info` belongs to the caller: it is only passed back.
    /// The version of the structure in Core Foundation, which is 0.
    public var version: Int
    /// The caller's pointer, which is passed to each callback and is never dereferenced.
    public var info: UnsafeMutableRawPointer?
    /// Returns the pointer to use from then on.
    public var retain: (@Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?)?
    /// Called with the pointer that `retain` returned; nil: the pointer needs no release.
    public var release: (@Sendable (UnsafeMutableRawPointer?) -> Void)?

    /// Creates a context with the members of Core Foundation's `CFStreamClientContext`.
    public init(
      version: Int = 0, info: UnsafeMutableRawPointer? = nil,
      retain: (@Sendable (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?)? = nil,
      release: (@Sendable (UnsafeMutableRawPointer?) -> Void)? = nil
    ) {
      self.version = version
      self.info = info
      self.retain = retain
      self.release = release
    }
  }

  /// The events for which the callback is called.
  public var events: Stream.Event
  /// The function that receives the events; nil: nothing is called.
  public var callback: Callback?
  /// The context of the callback; nil: it gets no pointer.
  public var context: Context?

  /// Creates a client for some events. It is set by a method of the stream.
  public init(_ events: Stream.Event, context: Context? = Context(), _ callback: Callback?) {
    self.events = events
    self.callback = callback
    self.context = context
  }
}

/// A client while it is set. A thread that is about to call it retains it, so that its context outlives the call.
final class HeldClient: Sendable {
  private let events: Stream.Event
  private let callback: StreamClient.Callback
  private let context: StreamClient.Context

  /// nil for a client that requests nothing: setting it removes the previous client.
  init?(_ client: StreamClient?) {
    guard let client, !client.events.isEmpty, let callback = client.callback, var context = client.context else {
      return nil
    }
    if let retain = context.retain { context.info = retain(context.info) }
    events = client.events
    self.callback = callback
    self.context = context
  }

  deinit { context.release?(context.info) }

  func hear(_ event: Stream.Event, of stream: BlobInputStream) {
    if events.contains(event) { callback(stream, event, context.info) }
  }
}
