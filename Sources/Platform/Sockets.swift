/// Socket calls that differ between systems. None of them blocks.
package enum Socket {
  #if os(Linux)
    package static let shutBoth = Int32(SHUT_RDWR)
    package static let shutWriting = Int32(SHUT_WR)
    /// A flag of `send` and `recv` that prevents blocking.
    package static let now = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
    /// A flag of `send`: more bytes follow at once, and can be sent in the same packet.
    package static let moreFollows = Int32(MSG_MORE)
    package static let stream = Int32(SOCK_STREAM.rawValue)
  #else
    package static let shutBoth = SHUT_RDWR
    package static let shutWriting = SHUT_WR
    package static let now = MSG_DONTWAIT
    package static let moreFollows: Int32 = 0
    package static let stream = SOCK_STREAM
  #endif

  /// Accepts the next connection as a non-blocking socket. Negative, with `errno`, if there is none.
  package static func accept(_ listener: Int32) -> Int32 {
    #if os(Linux)
      return fb_accept_at_once(listener)
    #else
      let socket = Darwin.accept(listener, nil, nil)
      if socket >= 0 {
        prepare(socket)
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
      }
      return socket
    #endif
  }

  /// Sends bytes of a file from `offset` on without copying them, as many as the socket accepts. Returns 0 if the file
  /// ends before `offset`. Returns a negative number, with `errno` as for `send`, or ENOSYS if the system does not
  /// support it.
  package static func sendFile(_ file: Int32, at offset: Int64, _ count: Int, on socket: Int32) -> Int {
    #if os(Linux)
      var place = off_t(offset)
      return sendfile(socket, file, &place, count)
    #else
      // A length of 0 would mean the rest of the file.
      if count <= 0 { return 0 }
      var length = off_t(count)
      let status = sendfile(file, socket, offset, &length, nil, 0)
      // With an error, the length says what was sent before it.
      return length > 0 ? Int(length) : Int(status)
    #endif
  }

  /// The number of bytes received in order plus the number of sent bytes that were acknowledged; negative if the system
  /// does not report it.
  package static func moved(_ socket: Int32) -> Int64 {
    #if os(Linux)
      fb_tcp_moved(socket)
    #else
      var facts = tcp_connection_info()
      var size = socklen_t(MemoryLayout<tcp_connection_info>.size)
      if getsockopt(socket, IPPROTO_TCP, TCP_CONNECTION_INFO, &facts, &size) != 0 { return -1 }
      // What was sent, without repetitions: the acknowledged bytes are not reported.
      return Int64(clamping: facts.tcpi_rxbytes &+ facts.tcpi_txbytes &- facts.tcpi_txretransmitbytes)
    #endif
  }

  /// Whether a close, also by the end of the process, discards sent bytes that are still in the socket's buffer, and
  /// resets the connection. Otherwise the system goes on sending them.
  package static func discardsOnClose(_ socket: Int32, _ discards: Bool) {
    var option = linger(l_onoff: discards ? 1 : 0, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }

  /// Makes the system report the socket as readable only when `count` bytes have arrived, it has no room for more, or the
  /// peer has closed. Returns false if the system does not support it. socket(7), SO_RCVLOWAT.
  package static func setLeastReadable(_ count: Int32, _ socket: Int32) -> Bool {
    var count = count
    return setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &count, socklen_t(MemoryLayout<Int32>.size)) == 0
  }

  /// Whether nothing has arrived that was not read yet, not even the peer's end.
  package static func isEmpty(_ socket: Int32) -> Bool {
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK) | now) < 0 && errno == EAGAIN
  }

  /// Whether all sent bytes were acknowledged. Also false if the system does not report it.
  package static func isQuiet(_ socket: Int32) -> Bool { unacknowledged(socket) == 0 }

  /// Whether sent bytes were not acknowledged yet, besides the last `count`. Also false if the system does not report it.
  package static func hasUnacknowledged(_ socket: Int32, besides count: Int = 0) -> Bool {
    unacknowledged(socket) ?? 0 > count
  }

  /// The number of sent bytes that were not acknowledged yet; nil if the system does not report it.
  private static func unacknowledged(_ socket: Int32) -> Int32? {
    var waiting: Int32 = 0
    #if os(Linux)
      return ioctl(socket, UInt(TIOCOUTQ), &waiting) == 0 ? waiting : nil
    #else
      var size = socklen_t(MemoryLayout<Int32>.size)
      return getsockopt(socket, SOL_SOCKET, SO_NWRITE, &waiting, &size) == 0 ? waiting : nil
    #endif
  }

  /// The state of the peer, as far as the system knows it.
  package enum Peer { case open, sendsNoMore, gone }
  package static func peer(of socket: Int32) -> Peer {
    #if os(Linux)
      let sendsNoMore: Int16 = 0x2000  // POLLRDHUP, which the Glibc module does not export
      var state = pollfd(fd: socket, events: sendsNoMore, revents: 0)
      if poll(&state, 1, 0) <= 0 { return .open }
      return state.revents & Int16(POLLHUP | POLLERR) != 0 ? .gone : .sendsNoMore
    #else
      // Unread bytes hide the end that follows them.
      var byte: UInt8 = 0
      let count = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT)
      if count >= 0 { return count == 0 ? .sendsNoMore : .open }
      return errno == EAGAIN || errno == EINTR ? .open : .gone
    #endif
  }
}
