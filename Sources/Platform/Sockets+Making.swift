extension Socket {
  /// Creates a socket that child processes do not inherit. Negative, with `errno`, on failure. With the flag `now`,
  /// sending over it raises no SIGPIPE.
  package static func make(_ family: Int32, _ type: Int32, _ kind: Int32) -> Int32 {
    #if os(Linux)
      return socket(family, type | Int32(SOCK_CLOEXEC.rawValue), kind)
    #else
      let number = socket(family, type, kind)
      if number >= 0 { prepare(number) }
      return number
    #endif
  }

  /// Whether a call with the flag `now` never waits, even on a blocking socket.
  package static var nowHoldsOnBlockingSockets: Bool {
    #if os(Linux)
      true
    #else
      // The manual pages of Apple's systems do not mention MSG_DONTWAIT.
      false
    #endif
  }

  #if !os(Linux)
    /// Sets what Linux takes as flags of the call that makes a socket or sends.
    static func prepare(_ socket: Int32) {
      _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
      var on: Int32 = 1
      setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<Int32>.size))
    }
  #endif
}
