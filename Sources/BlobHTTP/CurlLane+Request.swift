import Blobs
import CCurl

extension CurlLane {
  /// Has libcurl do the exchange; the body is open.
  func exchangeByLibcurl(_ transfer: Transfer, through proxy: Proxy?) throws(TransportError) -> HTTPResponse {
    let request = transfer.request
    let handle = exchanger ?? CurlHandle(of: self)
    exchanger = handle
    handle.set(server: request.url, through: proxy)
    handle.set(method: request.method)
    takenBuffer = 0
    defer { pool.returnBuffer(takenBuffer) }
    setBody(of: transfer, on: handle)
    fb_curl_set_pointer(handle.easy, CURLOPT_HTTPHEADER, lines.list(for: request, ["Expect:"]))
    // libcurl 7.88 frees what it has made of trailers once for each later request that has some.
    defer { transfer.job.exchange.trailers == nil ? handle.end() : handle.renew() }
    return try answer(transfer, try perform(transfer, with: handle))
  }

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
