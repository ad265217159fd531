import BlobStreams
import Blobs
import Foundation

/// A delegate that writes down what it hears, and does what it is told to.
package final class EventLog: NSObject, StreamDelegate, @unchecked Sendable {
  // `lock` guards all of it.
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

  /// What to do at each event, on the thread where it is heard.
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

  /// It must have heard exactly these, in this order.
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
