#if os(Linux)
  import BlobHTTP
  import Platform

  /// A connection to a server or to a proxy, over which bytes go both ways.
  enum Connection {
    case plain(Int32)
    case sealed(TLSChannel)
    /// TLS within the TLS of a proxy, which libcurl does.
    case nested(Dialer, socket: Int32)

    var socket: Int32 {
      switch self {
      case .plain(let socket): socket
      case .sealed(let channel): channel.socket
      case .nested(_, let socket): socket
      }
    }

    /// Nothing more is sent over it, not even TLS's goodbye.
    func close() {
      switch self {
      case .plain(let socket): Platform.close(socket)
      case .sealed(let channel): channel.end()
      // libcurl closes it when it is let go of; it would say goodbye before that.
      case .nested(_, let socket): shutdown(socket, Int32(SHUT_RDWR))
      }
    }

    /// Neither closed by the server nor about to be.
    var isQuiet: Bool {
      switch self {
      case .plain(let socket):
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EAGAIN
      case .sealed(let channel): return channel.isQuiet
      case .nested(let stream, _):
        var byte: UInt8 = 0
        let received = withUnsafeMutableBytes(of: &byte) { stream.receive(into: $0) }
        if case .nothing = received { return true }
        return false
      }
    }

    /// Sends what it takes of `left`, the rest of a request, which is `whole` where this is the first attempt; with more
    /// to follow at once, it need not leave yet. nil: it is broken.
    func send(_ left: UnsafeRawBufferPointer, isWhole: Bool, hasMore: Bool = false) -> Int? {
      switch self {
      case .plain(let socket):
        let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT) | (hasMore ? Int32(MSG_MORE) : 0)
        let count = Platform.send(socket, left.baseAddress, left.count, flags)
        if count < 0 && errno != EAGAIN && errno != EINTR { return nil }
        return max(0, count)
      case .sealed(let channel):
        if isWhole && channel.pending == 0 && channel.seal(left) < left.count { return nil }
        if case .broken = channel.flush() { return nil }
        // A record is longer than what is in it: never more than has left.
        return max(0, left.count - channel.pending)
      case .nested(let stream, _):
        let (count, outcome) = stream.send(left)
        if case .broken = outcome { return nil }
        return count
      }
    }

    /// Hands over the beginning of `bytes`, of a body; only where `unsent` is 0. What was accepted is done with, and need not
    /// have left yet.
    func write(_ bytes: UnsafeRawBufferPointer) -> (accepted: Int, SendOutcome) {
      switch self {
      case .plain(let socket):
        let count = Platform.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        if count < 0 { return (0, errno == EAGAIN || errno == EINTR ? .blocked : .broken) }
        // It took some: it is full.
        return (count, count == bytes.count ? .moved : .blocked)
      case .sealed(let channel):
        let count = channel.seal(bytes)
        if count == 0 { return (0, channel.isOpen ? .waiting : .broken) }
        return (count, channel.flush())
      case .nested(let stream, _): return stream.send(bytes)
      }
    }

    /// Whether its end can be told from a cut: libcurl has OpenSSL ignore that TLS was not ended.
    var knowsItsEnd: Bool { if case .nested = self { false } else { true } }

    /// Bytes that were accepted and have not left, or more than these: what is around them counts too.
    var unsent: Int {
      if case .sealed(let channel) = self { return channel.pending }
      return 0
    }

    /// Sends what has not left.
    func flush() -> SendOutcome {
      if case .sealed(let channel) = self { return channel.flush() }
      return .moved
    }

    /// Makes `receive(waiting:)` possible, where it is; otherwise calls on the socket do not wait.
    func lets(wait: Bool) {
      guard case .plain(let socket) = self else { return }
      if wait {
        var limit = timeval(tv_sec: 0, tv_usec: suseconds_t(Self.patience) * 1000)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      }
      let flags = fcntl(socket, F_GETFL)
      _ = fcntl(socket, F_SETFL, wait ? flags & ~O_NONBLOCK : flags | O_NONBLOCK)
    }

    var canWait: Bool { if case .plain = self { true } else { false } }

    /// Milliseconds after which `receive(waiting:)` gives up. A cancellation may have to wait for as long.
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

    /// The exchange is over and another may follow. false: it may not.
    func giveBack() -> Bool {
      guard case .sealed(let channel) = self else { return true }
      if channel.pending > 0 { return false }
      channel.endSending()
      return true
    }
  }

  /// What was read from a connection.
  enum Received {
    case bytes(Int)
    /// It has to be waited for.
    case nothing
    /// The other side has said that it is done.
    case end
    case broken
  }
#endif
