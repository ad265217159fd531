import BlobHTTP
import Blobs
import CCurl

#if os(Linux)
  import Platform

  /// Connections that libcurl makes, with their names looked up, certificates checked and proxies gone through, and closes;
  /// in between requests go over them past libcurl.
  extension ConnectionWorker {
    /// One of these, while no request is under way on it.
    struct IdleConnection {
      let wire: Connection
      /// Some place at its server.
      let url: HTTPURL
      let proxy: Proxy?
      var since = SuspendingClock.now
      /// It was idle, and the server may have closed it before it hears of the next request.
      var wasIdle = false
      /// `receive(waiting:)` is possible on it now.
      var waits = false

      /// A body that is not small is sent by calls that must not wait.
      mutating func lets(wait: Bool) {
        if waits == wait || !wire.canWait { return }
        wire.lets(wait: wait)
        waits = wait
      }
    }

    /// Whether requests to a server can go past libcurl: not where a proxy is asked for them one by one, nor where there is
    /// TLS within TLS.
    func isConnectable(_ url: HTTPURL, through proxy: Proxy?) -> Bool {
      guard connects else { return false }
      if url.scheme == "https" { return TLSChannel.isPossible && proxy?.scheme != "https" }
      return proxy?.scheme.hasPrefix("socks") ?? true
    }

    /// Whether the connection there is leads to the server, and nobody has closed it.
    func isKept(for url: HTTPURL, through proxy: Proxy?) -> Bool {
      guard let kept, kept.url.isAtServer(of: url), kept.proxy == proxy else { return false }
      return SuspendingClock.now - kept.since < Self.longestIdle && kept.wire.isQuiet
    }

    /// Makes one in place of what there is. false: libcurl does not say over what, and nothing will go past it here.
    func connect(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) -> Bool {
      letGo()
      try checkAhead(transfer)
      (transfer.attempts, transfer.wire) = (0, nil)
      let url = transfer.job.request.url
      let handle = connector ?? CurlHandle(of: self)
      connector = handle
      let end = SuspendingClock.now + options.connect
      let (place, isTLSOurs) = place(to: url, through: proxy)
      handle.set(server: place, through: proxy)
      handle.become(.connection)
      defer { if kept == nil { handle.end() } }
      let result = try perform(transfer, with: handle)
      if result != CURLE_OK { throw error(transfer, result) }
      guard var wire = transfer.wire else {
        connects = false
        return false
      }
      if case .plain(let socket) = wire { take(socket) }
      if isTLSOurs { wire = try begin(on: wire.socket, transfer, until: end) }
      kept = IdleConnection(wire: wire, url: url, proxy: proxy)
      return true
    }

    /// For requests that come later; unless there is one already, or it would be of no use to them.
    func connectAhead(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) {
      let url = transfer.job.request.url
      if !isConnectable(url, through: proxy) || isKept(for: url, through: proxy) { return }
      do throws(TransportError) {
        _ = try connect(transfer, through: proxy)
        kept?.wasIdle = true
      } catch {
        let words = String(error.message.dropFirst(transfer.job.name.count))
        if error.code != .cancelled { failedAhead = (url, .now, TransportError(error.code, words, cause: error.cause)) }
        throw error
      }
    }

    /// What came of a connection that was made ahead is news to the request that came next, and to none after it.
    private func checkAhead(_ transfer: Transfer) throws(TransportError) {
      guard let (url, since, error) = failedAhead.take(), SuspendingClock.now - since < .seconds(1),
        url.isAtServer(of: transfer.job.request.url)
      else { return }
      throw TransportError(error.code, transfer.job.name + error.message, cause: error.cause)
    }

    /// libcurl has connected. Asking it for the socket later gives none where it goes through a proxy.
    func hasConnected(_ transfer: Transfer, from port: Int32) {
      guard let socket = sockets.first(where: { localPort(of: $0) == port }) else { return }
      if handle!.isPlain { return transfer.wire = .plain(socket) }
      guard let tls = fb_curl_get_tls(handle!.easy) else { return }
      channel = TLSChannel(OpaquePointer(tls), on: socket, pool.smallBuffers)
      transfer.wire = channel.map { .sealed($0) }
    }

    /// Keeps nothing of libcurl but the socket: with 64 connections the rest is 3 MiB.
    private func take(_ socket: Int32) {
      taken = socket
      connector?.end()
      taken = -1
      (handle, connector) = (nil, nil)
    }

    /// Closes the connection that is kept, if there is one.
    func letGo() {
      if let kept = kept.take() { close(kept) }
    }

    /// Nothing more is sent over it, not even TLS's goodbye.
    func close(_ connection: IdleConnection) {
      switch connection.wire {
      case .plain(let socket): Platform.close(socket)
      case .sealed(let channel):
        shutdown(channel.socket, Int32(SHUT_RDWR))
        self.channel = nil
        if !channel.end() { connector?.end() }
      }
    }

    /// Longer is hardly anyone's patience with a connection that says nothing.
    private static let longestIdle = Duration.seconds(50)
  }

  private func localPort(of socket: Int32) -> Int32? {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { general in
        guard getsockname(socket, general, &size) == 0 else { return nil }
        // The port stands at the same place in both families.
        return general.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          Int32(UInt16(bigEndian: $0.pointee.sin_port))
        }
      }
    }
  }

  /// libcurl is about to connect to an address.
  func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
  ) -> curl_socket_t {
    guard let address else { return -1 }
    let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    let socket = Platform.socket(address.pointee.family, type, address.pointee.protocol)
    if socket < 0 {
      ConnectionWorker.from(context).socketError = errno
      return socket
    }
    if SameMachine.contains(address) { SameMachine.leaveUnpaced(socket) }
    ConnectionWorker.from(context).sockets.append(socket)
    return socket
  }
#else
  extension ConnectionWorker {
    struct IdleConnection {}
    func letGo() {}
    func connectAhead(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) {}
    func hasConnected(_ transfer: Transfer, from port: Int32) {}
    func direct(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) -> HTTPResponse? { nil }
  }
#endif
