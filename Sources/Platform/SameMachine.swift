#if os(Linux)
  /// A connection that ends on this machine: nothing on its way is congested.
  package enum SameMachine {
    /// Takes a socket out of the system's congestion control: of one that paces (BBR) the timers alone cost as much as a
    /// `sendfile`. It must be called before the socket is connected or listens. Reno is open to every user and has no timers.
    package static func leaveUnpaced(_ socket: Int32) {
      let name: StaticString = "reno"
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_CONGESTION, name.utf8Start, socklen_t(name.utf8CodeUnitCount))
    }
  }
#endif
