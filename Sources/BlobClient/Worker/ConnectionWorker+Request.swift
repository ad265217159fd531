import BlobHTTP
import Blobs
import CCurl
import Platform

#if os(Linux)
  import CSSL
#endif

extension ConnectionWorker {
  /// Has libcurl do the exchange; the body is open.
  func exchangeByLibcurl(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) -> HTTPResponse {
    let request = transfer.request
    if hasSurplus || sockets.contains(where: isReadable) { dropExchanger() }
    let handle = exchanger ?? CurlHandle(of: self)
    exchanger = handle
    handle.set(server: request.url, through: proxy)
    handle.set(method: request.method)
    takenBuffer = 0
    hasSurplus = false
    defer { pool.returnBuffer(takenBuffer) }
    setBody(of: transfer, on: handle)
    fb_curl_set_pointer(handle.easy, CURLOPT_HTTPHEADER, lines.list(for: request, ["Expect:"]))
    // libcurl 7.88 frees what it has made of trailers once for each later request that has some.
    defer { transfer.job.exchange.trailers == nil ? handle.end() : handle.renew() }
    return try answer(transfer, try perform(transfer, with: handle))
  }

  /// Closes the connection that libcurl keeps. What has come on it since the last answer belongs to no request, and libcurl
  /// would take it for the answer to the next one.
  private func dropExchanger() {
    if handle === exchanger { handle = nil }
    exchanger = nil
    hasSurplus = false
  }

  private func isReadable(_ socket: Int32) -> Bool {
    var byte: UInt8 = 0
    return recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) >= 0 || (errno != EAGAIN && errno != EINTR)
  }

  #if os(Linux)
    /// After each piece of content: libcurl reads no more than the answer has, and what is decrypted besides stays in OpenSSL,
    /// where no look at the socket finds it.
    func noteSurplus() {
      guard let handle, !handle.isPlain || handle.proxy?.scheme == "https", TLSChannel.isPossible,
        let tls = fb_curl_get_tls(handle.easy)
      else { return }
      hasSurplus = SSL_has_pending(OpaquePointer(tls)) == 1
    }
  #else
    func noteSurplus() {}
  #endif

  private func setBody(of transfer: Transfer, on handle: CurlHandle) {
    let request = transfer.request
    let hasTrailers = transfer.job.exchange.trailers != nil
    transfer.body = SentBody()
    if hasTrailers {
      fb_curl_set_trailers(handle.easy, giveTrailers)
      fb_curl_set_pointer(handle.easy, CURLOPT_TRAILERDATA, Unmanaged.passUnretained(self).toOpaque())
    }
    if request.method == "HEAD" {
      handle.become(.head)
    } else if hasTrailers || transfer.reader != nil || request.sendsLength {
      let length = hasTrailers ? nil : transfer.length
      transfer.body = SentBody(isChunked: length == nil)
      takenBuffer = pool.takeBuffer(isTLS: request.url.scheme == "https")
      handle.stream(length, from: takenBuffer)
    } else {
      handle.become(.none)
    }
  }
}
