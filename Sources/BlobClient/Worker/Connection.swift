#if os(Linux)
  import BlobHTTP
  import CCurl
  import Platform

  /// A connection that requests go over past libcurl: its socket, in the clear or through its TLS.
  enum Connection {
    case plain(Int32)
    case sealed(TLSChannel)

    var socket: Int32 {
      switch self {
      case .plain(let socket): socket
      case .sealed(let channel): channel.socket
      }
    }

    /// Neither closed by the server nor about to be.
    var isQuiet: Bool {
      switch self {
      case .plain(let socket):
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0 && errno == EAGAIN
      case .sealed(let channel): return channel.isQuiet
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
      }
    }

    /// Makes `receive(waiting:)` possible, where it is; else as libcurl wants its sockets.
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
      }
    }

    /// The exchange is over and another may follow. false: it may not.
    func giveBack() -> Bool {
      guard case .sealed(let channel) = self else { return true }
      if channel.pending > 0 { return false }
      channel.giveBack()
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
