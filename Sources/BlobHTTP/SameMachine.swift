#if canImport(Glibc)
  import CCurl
  import Glibc

  /// A way that ends on this machine: nothing on it is congested.
  package enum SameMachine {
    /// Takes a socket out of the system's congestion control: of one that paces (BBR) the timers alone cost as much as a
    /// `sendfile`. Has its effect before the socket is connected or listens. Reno is open to everyone and has no timers.
    package static func leaveUnpaced(_ socket: Int32) {
      let name: StaticString = "reno"
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_CONGESTION, name.utf8Start, socklen_t(name.utf8CodeUnitCount))
    }

    /// Whether libcurl means this machine: 127.0.0.0/8, ::1.
    static func contains(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
      // A longer address than the type shows follows in the same memory.
      let bytes = UnsafeRawPointer(address) + MemoryLayout<curl_sockaddr>.offset(of: \.addr)!
      switch address.pointee.family {
      case AF_INET: return bytes.load(as: sockaddr_in.self).sin_addr.s_addr.bigEndian >> 24 == 127
      case AF_INET6:
        let start = bytes + MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!
        let number = UnsafeRawBufferPointer(start: start, count: 16)
        return number.dropLast().allSatisfy { $0 == 0 } && number.last == 1
      default: return false
      }
    }
  }
#endif
