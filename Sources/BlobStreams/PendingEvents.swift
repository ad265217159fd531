import Foundation

/// The events of a stream that were not delivered yet. Guarded by its owner's lock.
struct PendingEvents {
  private var events: Stream.Event = []
  private var delivery = SingleDelivery()
  /// The run loops were not signalled since an event was added.
  private var mustSignal = false

  var isEmpty: Bool { events.isEmpty }

  /// Has no effect on an event that is pending already.
  mutating func add(_ event: Stream.Event) { if events.insert(event).inserted { mustSignal = true } }

  mutating func drop(_ event: Stream.Event) { events.remove(event) }
  mutating func dropAll() { events = [] }

  /// Whether the caller must signal the run loops.
  mutating func takeSignal() -> Bool {
    defer { mustSignal = false }
    return mustSignal
  }

  /// The next event, in the order in which events occur; nil: there is none, or another thread delivers. `endDelivery` must
  /// follow.
  mutating func beginDelivery() -> Stream.Event? {
    let order: [Stream.Event] = [.openCompleted, .hasBytesAvailable, .errorOccurred, .endEncountered]
    guard let event = order.first(where: events.contains), delivery.begin() else { return nil }
    events.remove(event)
    return event
  }

  /// Returns whether more events are pending.
  mutating func endDelivery() -> Bool {
    delivery.end()
    return !events.isEmpty
  }
}
