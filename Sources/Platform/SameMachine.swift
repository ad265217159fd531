#if os(Linux)
  /// Settings for connections between processes on this machine, where no network path can be congested.
  package enum SameMachine {
    /// Selects congestion control without pacing: with a pacing algorithm (BBR), the timers alone cost as much as a
    /// `sendfile`. Call it before the socket connects or listens. Every user may select Reno, which has no timers.
    package static func leaveUnpaced(_ socket: Int32) {
      let name: StaticString = "reno"
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_CONGESTION, name.utf8Start, socklen_t(name.utf8CodeUnitCount))
    }
  }
#endif
