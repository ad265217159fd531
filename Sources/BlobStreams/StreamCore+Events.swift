import Foundation

extension StreamCore {
  /// Delivers one event on the thread of a run loop. The next event is delivered in another iteration of the loop,
  /// because the receiver of this event may close the stream or remove it from the loop.
  func deliver() {
    guard let (event, stream, delegate, client) = next() else {
      if !signal.isHere { signal.raise() }
      return
    }
    // A stream that is its own delegate does not receive events.
    if let delegate, delegate !== stream { delegate.hear(event, of: stream) }
    client?.hear(event, of: stream)
    if locked({ pending.endDelivery() }) { signal.raise() }
  }

  private func next() -> (Stream.Event, BlobInputStream, (any StreamDelegate)?, HeldClient?)? {
    locked {
      guard !pending.isEmpty, let stream = receivers.stream, signal.isHere, let event = pending.beginDelivery()
      else { return nil }
      return (event, stream, receivers.delegate, receivers.clientToCall)
    }
  }

  /// Drops events that are pending for the previous delegate in a run loop. Events of a stream that is not scheduled
  /// yet are kept: they wait for a run loop.
  func setDelegate(_ delegate: (any StreamDelegate)?) {
    locked {
      receivers.delegate = delegate
      if delegate != nil && signal.isScheduled { pending.dropAll() }
    }
  }

  /// Returns false and changes nothing if the context's version is unknown.
  func setClient(_ client: StreamClient?) -> Bool {
    if let version = client?.context?.version, version != 0 { return false }
    let held = HeldClient(client)
    _ = locked { receivers.replaceClient(held) }
    return true
  }

  /// `add` adds the signal to a run loop.
  func schedule(_ add: (RunLoopSignal) -> Void) {
    if locked({ phase == .closed }) { return }
    add(signal)
    // The signal may have been sent before any run loop could receive it.
    if locked({ !pending.isEmpty }) { signal.raise() }
  }
}

extension StreamDelegate {
  func hear(_ event: Stream.Event, of stream: Stream) {
    #if canImport(ObjectiveC)
      self.stream?(stream, handle: event)
    #else
      self.stream(stream, handle: event)
    #endif
  }
}
