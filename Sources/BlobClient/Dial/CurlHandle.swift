import BlobHTTP
import CCurl

/// libcurl for one thing at a time, and what it is set to: only differences are set.
///
/// Created, used and freed on its lane's thread. The lane is the context of libcurl's callbacks, and outlives it.
final class CurlHandle {
  /// What it does in libcurl's multi handle.
  enum Use {
    /// It makes a connection, for requests that go past libcurl. That stays open as long as nothing else is begun.
    case connection
    /// It sends a request without a body, one whose answer has no content either, or one with a body.
    case none, head, streamed
  }
  private(set) var easy: UnsafeMutableRawPointer
  let multi: UnsafeMutableRawPointer
  private unowned let lane: ConnectionWorker
  private(set) var use = Use.none
  private(set) var proxy: Proxy?
  /// Nothing of TLS on the way to the server.
  private(set) var isPlain = true
  private var method = ""
  private var uploadBuffer = 0

  init(of lane: ConnectionWorker) {
    easy = curl_easy_init()!
    multi = curl_multi_init()!
    self.lane = lane
    fb_curlm_set_long(multi, CURLMOPT_MAXCONNECTS, 1)
    setUp()
  }

  deinit {
    end()
    curl_easy_cleanup(easy)
    curl_multi_cleanup(multi)
  }

  /// Begins what it is set to.
  func begin() {
    end()
    curl_multi_add_handle(multi, easy)
  }

  /// What was begun is over, and what was connected for others is closed. Harmless where nothing was.
  func end() { curl_multi_remove_handle(multi, easy) }

  /// Forgets all that it is set to, and keeps its connection.
  func renew() {
    end()
    curl_easy_cleanup(easy)
    easy = curl_easy_init()!
    (use, proxy, method, uploadBuffer) = (.none, nil, "", 0)
    setUp()
  }

  // MARK: What differs from request to request

  func set(server url: HTTPURL, through proxy: Proxy?) {
    fb_curl_set_string(easy, CURLOPT_URL, url.text)
    isPlain = url.scheme == "http"
    if proxy == self.proxy { return }
    fb_curl_set_string(easy, CURLOPT_PROXY, proxy?.description ?? "")
    fb_curl_set_string(easy, CURLOPT_PROXYUSERNAME, proxy?.user)
    fb_curl_set_string(easy, CURLOPT_PROXYPASSWORD, proxy?.password)
    self.proxy = proxy
  }

  func set(method: String) {
    if method == self.method { return }
    fb_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
    self.method = method
  }

  /// `length` nil: it goes in chunks.
  func stream(_ length: Int64?, from buffer: Int) {
    become(.streamed)
    fb_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(length ?? -1))
    if buffer == uploadBuffer { return }
    fb_curl_set_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, buffer)
    uploadBuffer = buffer
  }

  func become(_ use: Use) {
    if use == self.use { return }
    switch self.use {
    case .connection: fb_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 0)
    case .none: break
    case .head: fb_curl_set_long(easy, CURLOPT_NOBODY, 0)
    case .streamed: fb_curl_set_long(easy, CURLOPT_UPLOAD, 0)
    }
    fb_curl_set_long(easy, CURLOPT_HTTPGET, 1)
    switch use {
    case .connection: fb_curl_set_long(easy, CURLOPT_CONNECT_ONLY, 1)
    case .none: break
    case .head: fb_curl_set_long(easy, CURLOPT_NOBODY, 1)
    case .streamed: fb_curl_set_long(easy, CURLOPT_UPLOAD, 1)
    }
    self.use = use
  }

  // MARK: What stays

  private func setUp() {
    let options = lane.options
    fb_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, lane.errorText)
    fb_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    fb_curl_set_long(easy, CURLOPT_HTTP_VERSION, fb_curl_http_1_1())
    fb_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    fb_curl_set_string(easy, CURLOPT_USERAGENT, options.userAgent)
    fb_curl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, max(1, options.connect.milliseconds))
    // Without this a cancelled look-up is waited for.
    fb_curl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
    fb_curl_set_long(easy, CURLOPT_PATH_AS_IS, 1)
    fb_curl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    fb_curl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // A connection that was idle for longer is likely to be closed by the server as we write to it.
    fb_curl_set_long(easy, CURLOPT_MAXAGE_CONN, 55)
    // Which requests go through a proxy is ours to say: libcurl's own reading differs from version to version.
    fb_curl_set_string(easy, CURLOPT_PROXY, "")
    fb_curl_set_string(easy, CURLOPT_NOPROXY, "")
    verifyTLS(options)
    setCallbacks()
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

  private func setCallbacks() {
    let context = Unmanaged.passUnretained(lane).toOpaque()
    #if os(Linux)
      fb_curl_set_opensocket(easy, openSocket)
      fb_curl_set_pointer(easy, CURLOPT_OPENSOCKETDATA, context)
    #endif
    fb_curl_set_prereq(easy, aboutToSend)
    fb_curl_set_pointer(easy, CURLOPT_PREREQDATA, context)
    fb_curl_set_io(easy, CURLOPT_READFUNCTION, readBody)
    fb_curl_set_pointer(easy, CURLOPT_READDATA, context)
    fb_curl_set_seek(easy, rewindBody)
    fb_curl_set_pointer(easy, CURLOPT_SEEKDATA, context)
    fb_curl_set_io(easy, CURLOPT_HEADERFUNCTION, takeLine)
    fb_curl_set_pointer(easy, CURLOPT_HEADERDATA, context)
    fb_curl_set_io(easy, CURLOPT_WRITEFUNCTION, takeContent)
    fb_curl_set_pointer(easy, CURLOPT_WRITEDATA, context)
    fb_curl_set_closesocket(easy, closeSocket)
    fb_curl_set_pointer(easy, CURLOPT_CLOSESOCKETDATA, context)
  }
}

extension Duration {
  /// Those that are whole.
  var milliseconds: Int {
    Int(clamping: components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
  }

  /// As `poll` takes them: until it is over, and no sooner.
  var pollTime: Int32 { Int32(clamping: milliseconds + 1) }
}
