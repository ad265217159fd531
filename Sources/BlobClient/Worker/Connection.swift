import BlobHTTP
import Platform

/// A connection to a server or to a proxy.
enum Connection {
  case plain(Int32)
  case sealed(TLSChannel)
  /// TLS inside the TLS of a proxy, both done by libcurl.
  case nested(Dialer, socket: Int32)

  var socket: Int32 {
    switch self {
    case .plain(let socket): socket
    case .sealed(let channel): channel.socket
    case .nested(_, let socket): socket
    }
  }

  /// Whether the peer has not acknowledged the whole request yet. Also false if the system does not report it. Bytes
  /// that TLS has sent by itself since then are not counted, unless libcurl does the TLS: then they cannot be told
  /// apart.
  var hasUnacknowledgedRequest: Bool {
    if case .sealed(let channel) = self { return Socket.hasUnacknowledged(socket, besides: channel.replied) }
    return Socket.hasUnacknowledged(socket)
  }

  /// Sends nothing more, not even TLS's `close_notify`.
  func close() {
    switch self {
    case .plain(let socket): Platform.close(socket)
    case .sealed(let channel): channel.end()
    // libcurl closes the socket when the dialer is freed. It would send `close_notify` first, which the shutdown
    // prevents.
    case .nested(_, let socket): shutdown(socket, Socket.shutBoth)
    }
  }

  /// Tells, before a request reuses the connection, what the server has done since the last exchange. Bytes that have
  /// arrived stay in the socket.
  var idleState: IdleState {
    withUnsafeTemporaryAllocation(byteCount: UnaskedResponse.longest, alignment: 1) { room in
      let count: Int
      switch self {
      case .plain(let socket):
        count = recv(socket, room.baseAddress, room.count, Int32(MSG_PEEK | MSG_DONTWAIT))
        if count < 0 { return errno == EAGAIN ? .quiet : .reset }
      case .sealed(let channel):
        if channel.isQuiet { return .quiet }
        count = channel.peek(into: room)
        if count == 0, channel.wasReset { return .reset }
      case .nested(let stream, _):
        switch stream.receive(into: room) {
        case .nothing: return .quiet
        case .bytes(let received): count = received
        case .end: return .closed
        case .broken: return .reset
        }
      }
      return UnaskedResponse.isOne(room.prefix(max(0, count))) ? .responded : .closed
    }
  }

  /// Sends as much of `left`, the rest of a request, as the connection accepts, and returns the number of bytes. nil:
  /// the connection is broken. `isWhole`: this is the first attempt. `hasMore`: more bytes follow at once, and the
  /// connection may delay these.
  func send(_ left: UnsafeRawBufferPointer, isWhole: Bool, hasMore: Bool = false) -> Int? {
    switch self {
    case .plain(let socket):
      let flags = Socket.now | (hasMore ? Socket.moreFollows : 0)
      let count = Platform.send(socket, left.baseAddress, left.count, flags)
      if count < 0 && errno != EAGAIN && errno != EINTR { return nil }
      return max(0, count)
    case .sealed(let channel):
      if isWhole && channel.pending == 0 && channel.seal(left) < left.count { return nil }
      if case .broken = channel.flush() { return nil }
      // A record is longer than its content, so this never counts more bytes than have left.
      return max(0, left.count - channel.pending)
    case .nested(let stream, _):
      let (count, outcome) = stream.send(left)
      if case .broken = outcome { return nil }
      return count
    }
  }

  /// Hands over the beginning of `bytes`, which belong to a body; `unsent` must be 0. The memory of accepted bytes
  /// may be reused at once, although they may not have left yet.
  func write(_ bytes: UnsafeRawBufferPointer) -> (accepted: Int, SendOutcome) {
    switch self {
    case .plain(let socket):
      let count = Platform.send(socket, bytes.baseAddress, bytes.count, Socket.now)
      if count < 0 { return (0, errno == EAGAIN || errno == EINTR ? .blocked : .broken) }
      // The socket accepted only a part: its buffer is full.
      return (count, count == bytes.count ? .moved : .blocked)
    case .sealed(let channel):
      let count = channel.seal(bytes)
      if count == 0 { return (0, channel.isOpen ? .waiting : .broken) }
      return (count, channel.flush())
    case .nested(let stream, _): return stream.send(bytes)
    }
  }

  /// Whether a regular end differs from a broken connection: libcurl makes OpenSSL ignore a missing `close_notify`.
  var knowsItsEnd: Bool { if case .nested = self { false } else { true } }

  /// Accepted bytes that have not left yet. For TLS this is more, because it counts the framing of records too.
  var unsent: Int {
    if case .sealed(let channel) = self { return channel.pending }
    return 0
  }

  /// Sends the accepted bytes that have not left yet.
  func flush() -> SendOutcome {
    if case .sealed(let channel) = self { return channel.flush() }
    return .moved
  }

  /// true: makes the socket blocking, as `receive(waiting: true)` needs, if the connection supports it; false:
  /// non-blocking.
  func lets(wait: Bool) {
    guard case .plain(let socket) = self else { return }
    if wait {
      var limit = timeval(tv_sec: 0, tv_usec: suseconds_t(Self.patience) * 1000)
      setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    let flags = fcntl(socket, F_GETFL)
    _ = fcntl(socket, F_SETFL, wait ? flags & ~O_NONBLOCK : flags | O_NONBLOCK)
  }

  var canWait: Bool {
    // The socket stays blocking for the next request, which must not wait while it is sent.
    if case .plain = self { Socket.nowHoldsOnBlockingSockets } else { false }
  }

  /// Milliseconds after which a waiting `receive` returns. A cancellation may be delayed for as long.
  static let patience: Int32 = 50

  func receive(into room: UnsafeMutableRawBufferPointer, waiting: Bool = false) -> Received {
    switch self {
    case .plain(let socket):
      let count = recv(socket, room.baseAddress, room.count, Int32(waiting ? 0 : MSG_DONTWAIT))
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      return errno == EAGAIN || errno == EINTR ? .nothing : .broken
    case .sealed(let channel): return channel.receive(into: room)
    case .nested(let stream, _): return stream.receive(into: room)
    }
  }

  /// Prepares for the next exchange. false: the connection cannot be reused.
  func giveBack() -> Bool {
    guard case .sealed(let channel) = self else { return true }
    if channel.pending > 0 { return false }
    channel.endSending()
    return true
  }
}

/// The state in which a worker finds a connection that no request has used for a while.
enum IdleState {
  case quiet
  /// It has closed the connection in the ordinary way, or has sent something that is no response.
  case closed
  case reset
  /// It has sent a response that no request has asked for.
  case responded
}

/// Result of a read from a connection.
enum Received {
  case bytes(Int)
  /// Nothing has arrived yet.
  case nothing
  /// The peer has ended the connection regularly.
  case end
  case broken
}
