import BlobHTTP
import CCurl
import Platform

/// Has libcurl make one connection. libcurl looks the name up, tries its addresses, and goes through proxies; it exchanges no
/// message with the server.
///
/// Created, used and freed on the thread of one worker. It must live as long as the connection, unless `takeSocket` was
/// called.
final class Dialer {
  let route: Route
  /// libcurl's own words about what failed; empty where it has none.
  var words: String { errorText[0] == 0 ? "" : String(cString: errorText) }
  /// Why the last socket that libcurl wanted could not be made; 0: it could.
  private(set) var socketError: Int32 = 0
  /// Whether libcurl is to give up. Asked whenever it has done something, and for each byte of an answer to CONNECT: while
  /// these come quickly, libcurl looks at no limit, and `step` does not return either.
  var mustEnd: () -> Bool = { false }
  /// Where to wait for what libcurl waits for.
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

  /// Lets libcurl do what can be done without waiting. Returns the result once there is one.
  func step() -> CURLcode? {
    var running: Int32 = 0
    curl_multi_perform(multi, &running)
    if running > 0 { return nil }
    var left: Int32 = 0
    guard let message = curl_multi_info_read(multi, &left) else { return CURLE_FAILED_INIT }
    return fb_curl_message_result(message)
  }

  /// The socket of the connection that was made; nil: libcurl has made none that can be known.
  var socket: Int32? { sockets.count == 1 ? sockets[0] : nil }

  /// As `socket`, which is the caller's to close from now on. The rest of libcurl's memory is freed with this object.
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

  // MARK: The stream, where TLS is libcurl's

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
    // Without this a cancelled look-up is waited for.
    fb_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
    fb_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    fb_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // Which requests go through a proxy is ours to say: libcurl's own reading differs from version to version.
    fb_curl_set_string(easy, CURLOPT_PROXY, route.proxy?.description ?? "")
    fb_curl_set_string(easy, CURLOPT_NOPROXY, "")
    if let proxy = route.proxy {
      fb_curl_set_string(easy, CURLOPT_PROXYUSERNAME, proxy.user)
      fb_curl_set_string(easy, CURLOPT_PROXYPASSWORD, proxy.password)
      fb_curl_set_long(easy, CURLOPT_HTTPPROXYTUNNEL, 1)
    }
    if route.isNested { verifyTLS(options) }
    let context = Unmanaged.passUnretained(self).toOpaque()
    #if os(Linux)
      fb_curl_set_opensocket(easy, openSocket)
      fb_curl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context)
    #endif
    fb_curl_set_xferinfo(easy, noteStep)
    fb_curl_set_pointer(easy, CURLOPT_XFERINFODATA, context)
    fb_curl_set_long(easy, CURLOPT_NOPROGRESS, 0)
    fb_curl_set_closesocket(easy, closeSocket)
    fb_curl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, context)
  }

  private func verifyTLS(_ options: SocketTransport.Options) {
    // Where libcurl has another library for TLS than OpenSSL it says no, and keeps that one's order.
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

  #if os(Linux)
    fileprivate func open(_ address: UnsafeMutablePointer<curl_sockaddr>) -> Int32 {
      let type = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
      let socket = Platform.socket(address.pointee.family, type, address.pointee.protocol)
      if socket < 0 {
        socketError = errno
        return socket
      }
      if SameMachine.contains(address) { SameMachine.leaveUnpaced(socket) }
      sockets.append(socket)
      return socket
    }
  #endif

  fileprivate func close(_ socket: Int32) {
    sockets.removeAll { $0 == socket }
    if socket != taken { _ = Platform.close(socket) }
  }
}

// File-level functions, for a closure turned into a C function pointer next to an inout C struct crashes the compiler.

#if os(Linux)
  /// libcurl is about to connect to an address.
  private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
  ) -> curl_socket_t {
    guard let address else { return -1 }
    return Dialer.of(context).open(address)
  }
#endif

/// Another value than 0 ends what libcurl does.
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

  /// As `poll` takes them: until it is over, and no sooner.
  var pollTime: Int32 { Int32(clamping: milliseconds + 1) }
}
