extension Socket {
  /// The IP address of the peer of an accepted or connected socket, without its port; nil: the socket was never connected, or
  /// is of another family. On Linux, the address of a peer that has reset the connection is known, too.
  package static func peerAddress(of socket: Int32) -> String? {
    var storage = sockaddr_storage()
    return withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        readPeerAddress(of: socket, address) ? text(of: address) : nil
      }
    }
  }

  private static func readPeerAddress(of socket: Int32, _ address: UnsafeMutablePointer<sockaddr>) -> Bool {
    #if os(Linux)
      // getpeername fails after a reset. SO_PEERNAME tells what accept has told, and takes no more room than the address has.
      return [MemoryLayout<sockaddr_in6>.size, MemoryLayout<sockaddr_in>.size].contains { room in
        var size = socklen_t(room)
        return getsockopt(socket, SOL_SOCKET, SO_PEERNAME, address, &size) == 0
      }
    #else
      var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
      return getpeername(socket, address, &size) == 0
    #endif
  }

  /// The address as text; nil if it is no IP address. An IPv4 client of an IPv6 socket has the text of its IPv4 address.
  package static func text(of address: UnsafePointer<sockaddr>) -> String? {
    var room = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let family = Int32(address.pointee.sa_family)
    let raw = UnsafeRawPointer(address)
    let text: UnsafePointer<CChar>?
    switch family {
    case AF_INET:
      var number = raw.load(as: sockaddr_in.self).sin_addr
      text = inet_ntop(family, &number, &room, socklen_t(room.count))
    case AF_INET6:
      var number = raw.load(as: sockaddr_in6.self).sin6_addr
      text = inet_ntop(family, &number, &room, socklen_t(room.count))
    default: return nil
    }
    guard let text else { return nil }
    let found = String(cString: text)
    let mapped = "::ffff:"
    return found.hasPrefix(mapped) && found.contains(".") ? String(found.dropFirst(mapped.count)) : found
  }
}

/// An IP address of a network interface of this machine.
package struct LocalAddress: Sendable, Hashable {
  /// As text, without a zone.
  package let text: String
  package let isIPv6: Bool
  package let interface: String

  package init(text: String, isIPv6: Bool, interface: String) {
    (self.text, self.isIPv6, self.interface) = (text, isIPv6, interface)
  }

  /// The addresses at which other machines may reach this one: those of interfaces that are up, without loopback and
  /// link-local addresses. Empty if the system tells none.
  package static func all() -> [LocalAddress] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var found: [LocalAddress] = []
    var next = first
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard entry.ifa_flags & isUp != 0, entry.ifa_flags & isLoopback == 0, let address = entry.ifa_addr,
        let text = Socket.text(of: address)
      else { continue }
      let isIPv6 = Int32(address.pointee.sa_family) == AF_INET6
      // These need the name of an interface, which has no place in a URL, or are given by nobody (RFC 3927).
      if isIPv6 ? text.hasPrefix("fe80:") : text.hasPrefix("169.254.") { continue }
      found.append(LocalAddress(text: text, isIPv6: isIPv6, interface: String(cString: entry.ifa_name)))
    }
    return found
  }
}

// The values of IFF_UP and IFF_LOOPBACK, which Swift sees as different types on Linux and on Apple's systems.
private let isUp: UInt32 = 1
private let isLoopback: UInt32 = 8
