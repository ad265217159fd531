#if os(Linux)
  import CCurl
  import Platform

  /// A way that ends on this machine: nothing on it is congested.
  package enum SameMachine {
    /// Takes a socket out of the system's congestion control: of one that paces (BBR) the timers alone cost as much as a
    /// `sendfile`. Has its effect before the socket is connected or listens. Reno is open to everyone and has no timers.
    package static func leaveUnpaced(_ socket: Int32) {
      let name: StaticString = "reno"
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_CONGESTION, name.utf8Start, socklen_t(name.utf8CodeUnitCount))
    }

    /// Whether libcurl means this machine.
    static func contains(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
      let (start, count) =
        switch address.pointee.family {
        case AF_INET: (MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)!, 4)
        case AF_INET6: (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!, 16)
        default: (0, 0)
        }
      // A longer address than the type shows follows in the same memory.
      let bytes = UnsafeRawPointer(address) + MemoryLayout<curl_sockaddr>.offset(of: \.addr)! + start
      return count > 0 && IPAddress(bytes: Array(UnsafeRawBufferPointer(start: bytes, count: count))).isLoopback
    }
  }
#endif
