import Blobs
import CCurl

extension CurlLane {
  /// What the handle is set to, so that only differences are set.
  struct Shape {
    enum Body { case none, head, small, streamed, own }
    var body: Body?
    var method = ""
    var uploadBuffer = 0
    var proxy: Proxy?
    /// Of the pool's budget, for the exchange under way.
    var takenBuffer = 0
  }

  /// Bodies below this are read whole and sent with the head; libcurl's own limit for that is 64 KiB.
  static let smallBody: Int64 = 64 << 10
  /// The head of a small request that is sent with its body.
  static let longestHead = 8 << 10

  /// What stays for the life of the lane.
  func setUp() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    fb_curl_set_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
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
    fb_curlm_set_long(multi, CURLMOPT_MAXCONNECTS, 1)

    // As most programs ask; libcurl's own order begins with 256 bits, a tenth slower for nothing (RFC 8446 §9.1).
    // Where libcurl has another library for TLS than OpenSSL it says no, and keeps that one's order.
    fb_curl_set_string(
      easy, CURLOPT_TLS13_CIPHERS,
      "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256")
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
    // Which requests go through a proxy is ours to say: libcurl's own reading differs from version to version.
    fb_curl_set_string(easy, CURLOPT_PROXY, "")
    fb_curl_set_string(easy, CURLOPT_NOPROXY, "")

    #if canImport(Glibc)
      fb_curl_set_sockopt(easy, socketOpened)
      fb_curl_set_pointer(easy, CURLOPT_SOCKOPTDATA, context)
      fb_curl_set_debug(easy, hearOfHead)
      fb_curl_set_pointer(easy, CURLOPT_DEBUGDATA, context)
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

  /// Sets what differs from the request before; the body is open. No network yet.
  func prepare(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) {
    let request = transfer.job.request
    errorText[0] = 0
    shape.takenBuffer = 0
    setProxy(proxy)
    try setBody(transfer)
    fb_curl_set_string(easy, CURLOPT_URL, request.url.text)
    if request.method != shape.method {
      fb_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
      shape.method = request.method
    }
    // libcurl calls every small body a form, unless told otherwise.
    let isForm = shape.body == .small && request.headers["Content-Type"] == nil
    let list = lines.list(
      for: request, isForm ? ["Expect:", "Content-Type:"] : ["Expect:"],
      length: shape.body == .own ? transfer.length : nil)
    fb_curl_set_pointer(easy, CURLOPT_HTTPHEADER, list)
  }

  private func setProxy(_ proxy: Proxy?) {
    if proxy == shape.proxy { return }
    fb_curl_set_string(easy, CURLOPT_PROXY, proxy?.description ?? "")
    fb_curl_set_string(easy, CURLOPT_PROXYUSERNAME, proxy?.user)
    fb_curl_set_string(easy, CURLOPT_PROXYPASSWORD, proxy?.password)
    shape.proxy = proxy
  }

  private func setBody(_ transfer: Transfer) throws(TransportError) {
    let request = transfer.job.request
    let length = transfer.length
    if transfer.job.exchange.trailers != nil {
      becomeStreamed(transfer, length: nil)
      fb_curl_set_trailers(easy, giveTrailers)
      fb_curl_set_pointer(easy, CURLOPT_TRAILERDATA, Unmanaged.passUnretained(self).toOpaque())
    } else if request.method == "HEAD" {
      become(.head)
    } else if transfer.reader == nil && !request.sendsLength {
      become(.none)
    } else if let length, length < Self.smallBody {
      try readSmallBody(transfer, at: 0)
      become(.small)
      fb_curl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(length))
    } else if canSendBody(transfer) {
      become(.own)
      // Until every byte of the body has left: libcurl would take the connection for free with the answer.
      fb_curl_set_long(easy, CURLOPT_FORBID_REUSE, 1)
    } else {
      becomeStreamed(transfer, length: length)
    }
  }

  /// `length` nil: in chunks.
  private func becomeStreamed(_ transfer: Transfer, length: Int64?) {
    become(.streamed)
    fb_curl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(length ?? -1))
    shape.takenBuffer = pool.takeBuffer(isTLS: transfer.job.request.url.scheme == "https", for: length)
    if shape.takenBuffer != shape.uploadBuffer {
      fb_curl_set_long(easy, CURLOPT_UPLOAD_BUFFERSIZE, shape.takenBuffer)
      shape.uploadBuffer = shape.takenBuffer
    }
  }

  private func become(_ body: Shape.Body) {
    if shape.body == body { return }
    if shape.body == .head { fb_curl_set_long(easy, CURLOPT_NOBODY, 0) }
    if shape.body == .streamed { fb_curl_set_long(easy, CURLOPT_UPLOAD, 0) }
    if shape.body == .own {
      fb_curl_set_long(easy, CURLOPT_VERBOSE, 0)
      fb_curl_set_long(easy, CURLOPT_FORBID_REUSE, 0)
    }
    shape.body = body
    switch body {
    case .own:
      fb_curl_set_long(easy, CURLOPT_HTTPGET, 1)
      // Only so is it told when the head has left.
      fb_curl_set_long(easy, CURLOPT_VERBOSE, 1)
    case .none: fb_curl_set_long(easy, CURLOPT_HTTPGET, 1)
    case .head: fb_curl_set_long(easy, CURLOPT_NOBODY, 1)
    case .streamed: fb_curl_set_long(easy, CURLOPT_UPLOAD, 1)
    case .small:
      if small.baseAddress == nil { allocateSmall() }
      fb_curl_set_pointer(easy, CURLOPT_POSTFIELDS, small.baseAddress)
      fb_curl_set_long(easy, CURLOPT_POST, 1)
    }
  }

  func allocateSmall() {
    small = .allocate(byteCount: Self.longestHead + Int(Self.smallBody), alignment: 16)
  }

  func readSmallBody(_ transfer: Transfer, at start: Int) throws(TransportError) {
    if small.baseAddress == nil { allocateSmall() }
    let length = Int(transfer.length!)
    while transfer.given < Int64(length) {
      let used = Int(transfer.given)
      if read(transfer, into: UnsafeMutableRawBufferPointer(rebasing: small[start + used..<start + length])) == nil {
        throw transfer.failure!
      }
    }
  }
}

extension Duration {
  fileprivate var milliseconds: Int {
    Int(clamping: components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
  }
}
