import BlobStreams
import Blobs
import Foundation

/// A stream delegate that records events and runs a configurable reaction.
package final class EventLog: NSObject, StreamDelegate, @unchecked Sendable {
  // `lock` guards the following variables.
  private let lock = NSLock()
  private var log: [Entry] = []
  private var reaction: (@Sendable (Stream, Stream.Event) -> Void)?

  package struct Entry {
    package let event: Stream.Event
    package let thread: Thread
    package let mode: RunLoop.Mode?
  }

  package override init() {}

  package var entries: [Entry] { lock.withLock { log } }
  package var events: [Stream.Event] { entries.map(\.event) }
  package func count(_ event: Stream.Event) -> Int { events.count { $0 == event } }
  package func heard(_ event: Stream.Event) -> Bool { events.contains(event) }

  /// Sets a closure that is called for each event, on the thread that delivers the event.
  package func react(_ reaction: @escaping @Sendable (Stream, Stream.Event) -> Void) {
    lock.withLock { self.reaction = reaction }
  }

  package func stream(_ stream: Stream, handle event: Stream.Event) {
    let entry = Entry(event: event, thread: .current, mode: RunLoop.current.currentMode)
    let reaction = lock.withLock {
      log.append(entry)
      return self.reaction
    }
    reaction?(stream, event)
  }

  /// Requires exactly these events in this order.
  package func require(_ events: [Stream.Event], _ what: String) throws {
    let heard = self.events
    if heard != events {
      throw CheckFailure("\(what): heard \(heard.map(\.name)) instead of \(events.map(\.name))")
    }
  }
}

extension Stream.Event {
  package var name: String {
    switch self {
    case .openCompleted: "openCompleted"
    case .hasBytesAvailable: "hasBytesAvailable"
    case .hasSpaceAvailable: "hasSpaceAvailable"
    case .errorOccurred: "errorOccurred"
    case .endEncountered: "endEncountered"
    default: "\(rawValue)"
    }
  }
}
