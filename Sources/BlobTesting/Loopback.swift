import Platform

/// Blocking sockets on 127.0.0.1, for servers and proxies in tests.
package enum Loopback {
  /// A listening socket on a free port.
  package static func listen(backlog: Int32 = 128) -> (descriptor: Int32, port: Int) {
    let descriptor = makeSocket()
    var address = address(port: 0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let bound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, size) == 0 && startListening(descriptor, backlog)
          && getsockname(descriptor, address, &size) == 0
      }
    }
    precondition(bound, "no port on 127.0.0.1: error \(errno)")
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
  }

  /// nil if nothing listens on the port.
  package static func connect(port: Int) -> Int32? {
    let descriptor = makeSocket()
    var address = address(port: port)
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let connected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connectSocket(descriptor, $0, size) == 0 }
    }
    if connected { return descriptor }
    closeSocket(descriptor)
    return nil
  }

  /// nil if the listening socket was shut down.
  package static func accept(_ listener: Int32) -> Int32? {
    while true {
      let descriptor = acceptSocket(listener)
      if descriptor >= 0 {
        setNoDelay(descriptor)
        return descriptor
      }
      if errno != EINTR && errno != ECONNABORTED { return nil }
    }
  }

  /// Bytes read; 0 at the end of the stream, or if the connection is broken.
  package static func read(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count >= 0 { return count }
      if errno != EINTR { return 0 }
    }
  }

  /// false if the connection is broken.
  package static func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Bool {
    var done = 0
    while done < bytes.count {
      let count = send(descriptor, bytes.baseAddress! + done, bytes.count - done, noSignal)
      if count < 0 && errno == EINTR { continue }
      if count <= 0 { return false }
      done += count
    }
    return true
  }

  package static func close(_ descriptor: Int32) { closeSocket(descriptor) }

  /// Ends blocked calls on other threads without closing the descriptor.
  package static func shut(_ descriptor: Int32) { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Closes with RST; data in transit is lost.
  package static func reset(_ descriptor: Int32) {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
    closeSocket(descriptor)
  }

  /// Waits until one of two sockets is readable.
  package static func wait(_ first: Int32, _ second: Int32) -> (first: Bool, second: Bool) {
    var sockets = [pollfd(fd: first, events: Int16(POLLIN), revents: 0)]
    sockets.append(pollfd(fd: second, events: Int16(POLLIN), revents: 0))
    while poll(&sockets, 2, -1) < 0 && errno == EINTR {}
    return (sockets[0].revents != 0, sockets[1].revents != 0)
  }

  /// Whether the socket has data or its end within this time.
  package static func isReadable(_ descriptor: Int32, within milliseconds: Int32) -> Bool {
    var socket = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    var count = poll(&socket, 1, milliseconds)
    while count < 0 && errno == EINTR { count = poll(&socket, 1, milliseconds) }
    return count > 0
  }

  private static func setNoDelay(_ descriptor: Int32) {
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func makeSocket() -> Int32 {
    #if os(Linux)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    precondition(descriptor >= 0, "no socket: error \(errno)")
    return descriptor
  }

  private static func address(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}

#if os(Linux)
  private let noSignal = Int32(MSG_NOSIGNAL)
#else
  private let noSignal: Int32 = 0
#endif

private func startListening(_ descriptor: Int32, _ backlog: Int32) -> Bool { listen(descriptor, backlog) == 0 }
#if os(Linux)
  // Close-on-exec: a child process started at the same time must not keep the connection open.
  private func acceptSocket(_ listener: Int32) -> Int32 { fb_accept_cloexec(listener) }
#else
  private func acceptSocket(_ listener: Int32) -> Int32 { accept(listener, nil, nil) }
#endif
private func closeSocket(_ descriptor: Int32) { close(descriptor) }
private func connectSocket(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> Int32 {
  connect(descriptor, address, size)
}
