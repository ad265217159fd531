import BlobHTTP
import Platform

/// A listening socket, its address and its port.
struct Listener: Sendable {
  let socket: Descriptor
  let port: UInt16
  /// Formatted as in a URL: an IPv6 address has brackets.
  let host: String
  let isLoopback: Bool

  /// `lastPort`: if `port` and those after it are taken, the ports up to this one are tried.
  init(_ address: String, _ port: UInt16, upTo lastPort: UInt16?) throws(ServerError) {
    do throws(ServerError) {
      self = try Listener(address, port)
    } catch {
      guard error.systemError == EADDRINUSE, let lastPort, port < lastPort else { throw error }
      for other in (port + 1)...lastPort {
        guard let listener = try? Listener(address, other) else { continue }
        self = listener
        return
      }
      var error = error
      error.message = "listen on \(address): all ports from \(port) to \(lastPort) are taken by other programs"
      throw error
    }
  }

  init(_ address: String, _ port: UInt16) throws(ServerError) {
    let place = "\(address) port \(port)"
    var hints = addrinfo()
    hints.ai_flags = AI_PASSIVE | (address == "localhost" ? 0 : AI_NUMERICHOST)
    hints.ai_socktype = Socket.stream
    let bare = address.hasPrefix("[") && address.hasSuffix("]") ? String(address.dropFirst().dropLast()) : address
    var found: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(bare, String(port), &hints, &found)
    guard status == 0, let info = found else {
      throw ServerError("cannot listen on '\(address)': it must be an IP address or 'localhost'")
    }
    defer { freeaddrinfo(found) }
    let number = makeSocket(info.pointee.ai_family, info.pointee.ai_socktype, 0)
    if number < 0 { throw failed("listen on", place) }
    socket = Descriptor(number)
    var yes: Int32 = 1
    setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    // Accepted connections inherit this option: responses are sent without delay.
    setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    _ = fcntl(number, F_SETFD, FD_CLOEXEC)
    _ = fcntl(number, F_SETFL, O_NONBLOCK)
    isLoopback = bare == "localhost" || bare == "::1" || bare.hasPrefix("127.")
    #if os(Linux)
      if isLoopback { SameMachine.leaveUnpaced(number) }
    #endif
    if bind(number, info.pointee.ai_addr, info.pointee.ai_addrlen) != 0 || listen(number, 1024) != 0 {
      throw failed("listen on", place)
    }
    self.port = try Self.boundPort(number, place)
    host = bare.contains(":") ? "[\(bare)]" : bare
  }

  private static func boundPort(_ number: Int32, _ place: String) throws(ServerError) -> UInt16 {
    var bound = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = withUnsafeMutableBytes(of: &bound) {
      getsockname(number, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &size)
    }
    if status != 0 { throw failed("listen on", place) }
    // The port has the same position in both address families.
    return withUnsafeBytes(of: bound) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
  }
}

// Named differently because a member named `socket` would hide the function.
private func makeSocket(_ family: Int32, _ type: Int32, _ kind: Int32) -> Int32 { socket(family, type, kind) }
