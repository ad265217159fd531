import BlobHTTP
import CCurl
import Platform

/// Makes one connection with libcurl, which resolves the name, tries the addresses and connects through proxies.
/// libcurl exchanges no HTTP message with the server.
///
/// Created, used and freed on the thread of one worker. It must live as long as the connection, unless `takeSocket` was
/// called.
final class Dialer {
  let route: Route
  /// libcurl's error text; empty if it has none.
  var words: String { errorText[0] == 0 ? "" : String(cString: errorText) }
  /// `errno` of the last socket that could not be created; 0 if the last one could be created.
  private(set) var socketError: Int32 = 0
  /// Returns true to make libcurl give up. Called after each step of libcurl, and for each byte of the response to
  /// CONNECT: while these bytes arrive quickly, libcurl checks no timeout and `step` does not return.
  var mustEnd: () -> Bool = { false }
  /// The libcurl multi handle, used to wait for libcurl's sockets.
  let multi: UnsafeMutableRawPointer

  private let easy: UnsafeMutableRawPointer
  private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  /// The sockets that libcurl has opened and not closed.
  private var sockets: [Int32] = []
  /// The socket that `takeSocket` has given to the caller: libcurl must not close it.
  private var taken: Int32 = -1

  init(_ route: Route, _ options: SocketTransport.Options) {
    self.route = route
    easy = curl_easy_init()!
    multi = curl_multi_init()!
    errorText[0] = 0
    setUp(options)
    curl_multi_add_handle(multi, easy)
  }

  deinit {
    curl_multi_remove_handle(multi, easy)
    curl_easy_cleanup(easy)
    curl_multi_cleanup(multi)
    errorText.deallocate()
  }

  /// Lets libcurl do everything that it can do without waiting. Returns the result, or nil while there is none.
  func step() -> CURLcode? {
    var running: Int32 = 0
    curl_multi_perform(multi, &running)
    if running > 0 { return nil }
    var left: Int32 = 0
    guard let message = curl_multi_info_read(multi, &left) else { return CURLE_FAILED_INIT }
    return fb_curl_message_result(message)
  }

  /// The socket of the connection; nil: libcurl is not connected. While libcurl tries several addresses, it has several
  /// sockets open, and one that got no answer may still be among them when another is connected.
  var socket: Int32? {
    if sockets.count == 1 { return sockets[0] }
    var active: curl_socket_t = -1
    guard fb_curl_get_socket(easy, CURLINFO_ACTIVESOCKET, &active) == CURLE_OK else { return nil }
    return sockets.first { $0 == active }
  }

  /// Returns `socket`, which the caller must close from now on. The rest of libcurl's memory is freed with this object.
  func takeSocket() -> Int32? {
    guard let socket else { return nil }
    taken = socket
    return socket
  }

  func number(_ info: CURLINFO) -> Int {
    var number = 0
    fb_curl_get_long(easy, info, &number)
    return number
  }

  // MARK: Sending and receiving, where libcurl does TLS

  func send(_ bytes: UnsafeRawBufferPointer) -> (accepted: Int, SendOutcome) {
    var count = 0
    switch curl_easy_send(easy, bytes.baseAddress, bytes.count, &count) {
    case CURLE_OK: return (count, count == bytes.count ? .moved : .blocked)
    case CURLE_AGAIN: return (0, .blocked)
    default: return (0, .broken)
    }
  }

  func receive(into room: UnsafeMutableRawBufferPointer) -> Received {
    var count = 0
    switch curl_easy_recv(easy, room.baseAddress, room.count, &count) {
    case CURLE_OK: return count > 0 ? .bytes(count) : .end
    case CURLE_AGAIN: return .nothing
    default: return .broken
    }
  }

  // MARK: Setting up

  private func setUp(_ options: SocketTransport.Options) {
    fb_curl_set_string(easy, CURLOPT_URL, route.dialled)
    fb_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
    fb_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
    fb_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    fb_curl_set_long(easy, CURLOPT_HTTP_VERSION, fb_curl_http_1_1())
    fb_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    fb_curl_set_string(easy, CURLOPT_USERAGENT, options.userAgent)
    fb_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, options.connect.milliseconds))
    // Without this option, libcurl waits for a cancelled name look-up to end.
    fb_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
    fb_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    fb_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // `ProxyRules` decides which requests use a proxy, because libcurl's own rules differ between its versions.
    fb_curl_set_string(easy, CURLOPT_PROXY, route.proxy?.description ?? "")
    fb_curl_set_string(easy, CURLOPT_NOPROXY, "")
    if let proxy = route.proxy {
      fb_curl_set_string(easy, CURLOPT_PROXYUSERNAME, proxy.user)
      fb_curl_set_string(easy, CURLOPT_PROXYPASSWORD, proxy.password)
      fb_curl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
    }
    if route.isNested { verifyTLS(options) }
    let context = Unmanaged.passUnretained(self).toOpaque()
    fb_curl_set_opensocket(easy, openSocket)
    fb_curl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context)
    fb_curl_set_xferinfo(easy, noteStep)
    fb_curl_set_pointer(easy, CURLOPT_XFERINFODATA, context)
    fb_curl_set_long(easy, CURLOPT_NOPROGRESS, 0)
    fb_curl_set_closesocket(easy, closeSocket)
    fb_curl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, context)
  }

  private func verifyTLS(_ options: SocketTransport.Options) {
    // libcurl rejects this option if it was built with a TLS library other than OpenSSL, and keeps that library's
    // order.
    fb_curl_set_string(easy, CURLOPT_TLS13_CIPHERS, Certificates.ciphers)
    for (file, folder) in [(CURLOPT_CAINFO, CURLOPT_CAPATH), (CURLOPT_PROXY_CAINFO, CURLOPT_PROXY_CAPATH)] {
      if let caFile = options.caFile {
        fb_curl_set_string(easy, file, caFile)
        fb_curl_set_string(easy, folder, nil)
      } else if Certificates.areHashed {
        fb_curl_set_string(easy, file, nil)
      }
    }
    for option in [CURLOPT_SSL_VERIFYPEER, CURLOPT_PROXY_SSL_VERIFYPEER] {
      fb_curl_set_long(easy, option, options.verifiesTLS ? 1 : 0)
    }
    for option in [CURLOPT_SSL_VERIFYHOST, CURLOPT_PROXY_SSL_VERIFYHOST] {
      fb_curl_set_long(easy, option, options.verifiesTLS ? 2 : 0)
    }
  }

  fileprivate static func of(_ context: UnsafeMutableRawPointer?) -> Dialer {
    Unmanaged<Dialer>.fromOpaque(context!).takeUnretainedValue()
  }

  fileprivate func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> Int32 {
    let socket = Socket.make(address.pointee.family, address.pointee.socktype, address.pointee.protocol)
    if socket < 0 {
      socketError = errno
      return socket
    }
    #if os(Linux)
      if SameMachine.contains(address) { SameMachine.leaveUnpaced(socket) }
    #endif
    sockets.append(socket)
    return socket
  }

  fileprivate func close(_ socket: Int32) {
    sockets.removeAll { $0 == socket }
    if socket != taken { _ = Platform.close(socket) }
  }
}

// These are file-level functions because the compiler crashes on a closure converted to a C function pointer next to an
// inout C struct.

/// Called by libcurl before it connects to an address.
private func openSocket(
  _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
  guard let address else { return -1 }
  return Dialer.of(context).open(address)
}

/// libcurl's progress callback. A result other than 0 aborts the connection attempt.
private func noteStep(
  _ context: UnsafeMutableRawPointer?, _ total: curl_off_t, _ now: curl_off_t, _ totalUp: curl_off_t,
  _ nowUp: curl_off_t
) -> Int32 {
  Dialer.of(context).mustEnd() ? 1 : 0
}

private func closeSocket(_ context: UnsafeMutableRawPointer?, _ socket: curl_socket_t) -> Int32 {
  Dialer.of(context).close(socket)
  return 0
}

extension Duration {
  /// Whole milliseconds; a fraction is dropped.
  var milliseconds: Int {
    Int(clamping: components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
  }

  /// The timeout for `poll`, in milliseconds, rounded up so that `poll` does not return early.
  var pollTime: Int32 { Int32(clamping: milliseconds + 1) }
}
