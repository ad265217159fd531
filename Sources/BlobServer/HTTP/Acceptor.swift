import Platform

/// The listening socket of an event loop, and whether the loop's poller watches it.
struct Acceptor {
  typealias Instant = ContinuousClock.Instant

  static let tag: UInt64 = 0

  private let socket: Descriptor
  private let poller: Poller
  private let tls: TLSContext?
  /// false once the socket is about to be closed.
  private(set) var isOpen = true
  private var isWatched = false
  /// When a client last found no place, and no connection that could be closed for it; nil: none waits.
  private var crowded: Instant?

  init(_ socket: Descriptor, _ poller: Poller, _ tls: TLSContext?) {
    (self.socket, self.poller, self.tls) = (socket, poller, tls)
  }

  /// Whether a client waits for a place.
  var isCrowded: Bool { crowded != nil }

  /// When to look again for a connection that can be closed for a waiting client; nil: no client waits.
  var nextTurn: Instant? { crowded.map { $0 + .milliseconds(100) } }

  /// Whether the poller reports new clients, or there will be none.
  var needsNoTurn: Bool { isWatched || !isOpen }

  /// Listens also while there is no place: a client that then comes gets the place of a connection that is not needed.
  mutating func listen() {
    if needsNoTurn { return }
    crowded = nil
    isWatched = poller.add(socket.number, [.read, .shared], tag: Self.tag)
  }

  /// Stops accepting until a connection of this loop has ended, or may have become idle. `crowded`: the time, if a client
  /// waits for a place.
  mutating func pause(crowded now: Instant? = nil) {
    if isWatched { poller.remove(socket.number) }
    isWatched = false
    if let now { crowded = now }
  }

  mutating func end() {
    isOpen = false
    pause()
  }

  /// Accepts a client. Like `accept`, returns a negative number with `errno`.
  func accept() -> Int32 { Socket.accept(socket.number) }

  /// nil: out of memory.
  func stream(of client: Descriptor) -> ClientStream? {
    guard let tls else { return ClientStream(client, nil) }
    return tls.session(on: client.number).map { ClientStream(client, $0) }
  }
}
