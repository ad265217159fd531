import Platform

/// The events of a connection's socket that a poller watches for.
struct SocketWatch {
  /// The number by which events name the connection.
  let tag: UInt64
  /// nil: the poller does not watch the socket.
  private var interest: Poller.Interest?

  init(tag: UInt64) { self.tag = tag }

  /// Returns false if the system refuses.
  @discardableResult
  mutating func change(to interest: Poller.Interest, of socket: Descriptor, in poller: Poller) -> Bool {
    if self.interest == interest { return true }
    defer { self.interest = interest }
    return self.interest == nil
      ? poller.add(socket.number, interest, tag: tag) : poller.change(socket.number, interest, tag: tag)
  }

  mutating func end(of socket: Descriptor, in poller: Poller) {
    if interest != nil { poller.remove(socket.number) }
    interest = nil
  }
}
