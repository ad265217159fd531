/// For what a connection waits, besides its socket and a worker.
struct ConnectionWaits {
  /// The event loop will call `goOn`.
  var isQueued = false
  /// The next bytes of the response come from another computer, and are not here yet.
  var isStarved = false
  /// The receiver of the body has not taken what was read, so nothing is read.
  var isPaused = false
}

/// Waiting for another computer, which stores the files of the server: while it is slower than the client, nothing is read
/// from the socket, or nothing is sent.
extension Connection {
  /// Called when bytes for the response have come from another computer, or the receiver of the body has room again.
  func resume() {
    if waits.isStarved {
      waits.isStarved = false
      timer.goOn(loop.clock.now)
      flush()
    } else if waits.isPaused {
      waits.isPaused = false
      timer.goOn(loop.clock.now)
      if readsRequest { goOnReading() }
    }
    settle()
  }

  func hasRoom(_ receiver: any BodyReceiver) -> Bool {
    guard loop.handler.service.relays != nil, let relayed = receiver as? RelayedReceiver else { return true }
    return relayed.hasRoom { [self, loop] in loop.post(.resumed(self)) }
  }

  /// The most bytes to read now if they have to wait for a worker; nil: they do not.
  var mostRelayed: Int? {
    if loop.handler.service.relays == nil { return nil }
    guard case .receiving(let receiver) = phase, let relayed = receiver as? RelayedReceiver else {
      return ServiceThreads.leastRelayed
    }
    return relayed.room
  }
}
