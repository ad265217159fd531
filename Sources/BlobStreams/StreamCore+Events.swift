import Foundation

extension StreamCore {
  /// With the lock. What is pending already is not told twice.
  func tell(_ event: Stream.Event) {
    if pending.contains(event) { return }
    pending.insert(event)
    mustRing = true
  }

  /// Gives one event to those who hear of it, on the thread of a run loop. The next one takes another turn of the loop:
  /// whoever hears this one may close the stream, or leave the loop.
  func deliver() {
    guard let (event, stream, delegate, client) = next() else {
      if !bell.isHere { bell.ring() }
      return
    }
    // A stream that is its own delegate has nothing to say to itself.
    if let delegate, delegate !== stream { delegate.hear(event, of: stream) }
    client?.hear(event, of: stream)
    let hasMore = locked {
      teller.end()
      return !pending.isEmpty
    }
    if hasMore { bell.ring() }
  }

  private func next() -> (Stream.Event, BlobInputStream, (any StreamDelegate)?, HeldClient?)? {
    locked {
      // In the order in which they happen.
      let order: [Stream.Event] = [.openCompleted, .hasBytesAvailable, .errorOccurred, .endEncountered]
      guard let event = order.first(where: pending.contains), let stream, bell.isHere, teller.begin()
      else { return nil }
      pending.remove(event)
      return (event, stream, delegate, reportsErrors ? client : nil)
    }
  }

  /// Events that wait in a loop for the delegate before are not for the new one. Those of a stream that was not
  /// scheduled yet are: they wait for the loop.
  func setDelegate(_ delegate: (any StreamDelegate)?) {
    locked {
      self.delegate = delegate
      if delegate != nil && bell.isHung { pending = [] }
    }
  }

  /// False, and nothing changed, for a context of a version that is not known.
  func setClient(_ client: StreamClient?) -> Bool {
    if let version = client?.context?.version, version != 0 { return false }
    let held = HeldClient(client)
    var before: HeldClient?
    locked {
      before = self.client
      self.client = held
    }
    _ = before
    return true
  }

  /// `hang` puts the bell where it should be.
  func schedule(_ hang: (RunLoopBell) -> Void) {
    if locked({ phase == .closed }) { return }
    hang(bell)
    // It may have rung where nobody heard it.
    if locked({ !pending.isEmpty }) { bell.ring() }
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
