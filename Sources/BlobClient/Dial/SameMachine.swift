#if os(Linux)
  import BlobHTTP
  import CCurl
  import Platform

  extension SameMachine {
    /// Whether the address is a loopback address.
    static func contains(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
      let (start, count) =
        switch address.pointee.family {
        case AF_INET: (MemoryLayout<sockaddr_in>.offset(of: \.sin_addr)!, 4)
        case AF_INET6: (MemoryLayout<sockaddr_in6>.offset(of: \.sin6_addr)!, 16)
        default: (0, 0)
        }
      // `curl_sockaddr` declares a `sockaddr`; a longer address continues in the same memory.
      let bytes = UnsafeRawPointer(address) + MemoryLayout<curl_sockaddr>.offset(of: \.addr)! + start
      return count > 0 && IPAddress(bytes: Array(UnsafeRawBufferPointer(start: bytes, count: count))).isLoopback
    }
  }
#endif
