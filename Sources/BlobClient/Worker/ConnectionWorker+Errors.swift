import BlobHTTP
import Blobs
import CCurl
import Platform

extension ConnectionWorker {
  /// libcurl's verdict in our terms: operation, place, what is wrong, and how far the body was.
  func error(_ transfer: Transfer, _ result: CURLcode) -> TransportError {
    let text = errorText[0] == 0 ? String(cString: curl_easy_strerror(result)) : String(cString: errorText)
    if let error = tooLong(transfer, result, text) { return error }
    let (code, words) =
      descriptorProblem(transfer, result) ?? proxyProblem(transfer, result, text) ?? tlsProblem(transfer, result, text)
      ?? other(transfer, result, text)
    return TransportError(code, "\(transfer.job.name): \(words)")
  }

  func notHTTP(_ transfer: Transfer) -> TransportError {
    TransportError(
      .badResponse,
      "\(transfer.job.name): what \(transfer.server) answers is not HTTP/1.1, after \(transfer.sent) bytes were sent")
  }

  /// The header or trailer section of the answer has more than `most` bytes.
  func tooLong(_ transfer: Transfer, _ most: Int) -> TransportError {
    TransportError(
      .badResponse, "\(transfer.job.name): \(section(transfer)) is too long: it has more than \(most) bytes")
  }

  /// A line of the header or trailer section of the answer has more than `most` bytes.
  func tooLong(_ transfer: Transfer, line most: Int) -> TransportError {
    TransportError(
      .badResponse, "\(transfer.job.name): \(section(transfer)) is too long: a line of it has more than \(most) bytes")
  }

  private func section(_ transfer: Transfer) -> String {
    "the \(transfer.head.final == nil ? "header" : "trailer") section of what \(transfer.server) answers"
  }

  /// libcurl's errors for a header section over its own limits; nil: this is another error.
  private func tooLong(_ transfer: Transfer, _ result: CURLcode, _ text: String) -> TransportError? {
    // libcurl before 8.6 calls a line that is too long "out of memory"; later versions have CURLE_TOO_LARGE (100) for it.
    if result == CURLE_OUT_OF_MEMORY || result.rawValue == 100, transfer.attempts > 0 {
      return tooLong(transfer, line: Int(CURL_MAX_HTTP_HEADER))
    }
    guard result == CURLE_RECV_ERROR, text.hasPrefix("Too large response headers") else { return nil }
    return TransportError(.badResponse, "\(transfer.job.name): \(section(transfer)) is too long (\(text))")
  }

  func tooLate(_ transfer: Transfer) -> String { "no connection to \(transfer.server) within \(options.connect)" }

  private func number(_ info: CURLINFO) -> Int {
    var number = 0
    fb_curl_get_long(handle!.easy, info, &number)
    return number
  }

  /// What the system says about the connection that failed; nil where it says nothing.
  private var systemError: String? {
    let number = number(CURLINFO_OS_ERRNO)
    return number == 0 ? nil : String(cString: strerror(Int32(number))).lowercased()
  }

  private func other(_ transfer: Transfer, _ result: CURLcode, _ text: String) -> (TransportError.Code, String) {
    let server = transfer.server
    switch result {
    case CURLE_COULDNT_RESOLVE_HOST: return (.resolve, "no address is known for \(transfer.job.request.url.host)")
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: return (.connect, "\(systemError ?? text) (\(server))")
    case CURLE_OPERATION_TIMEDOUT where text.hasPrefix("Resolving"):
      return (.resolve, "no address for \(transfer.job.request.url.host) within \(options.connect)")
    case CURLE_OPERATION_TIMEDOUT:
      return (.connect, tooLate(transfer))
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING, CURLE_WRITE_ERROR:
      return (.badResponse, "what \(server) answers is not HTTP/1.1 (\(text)), after \(transfer.sent) bytes were sent")
    // libcurl 7.88's word for a folded line that follows no field.
    case CURLE_BAD_FUNCTION_ARGUMENT where transfer.attempts > 0:
      return (.badResponse, "what \(server) answers is not HTTP/1.1, after \(transfer.sent) bytes were sent")
    case CURLE_URL_MALFORMAT: return (.badRequest, "\(text) (\(server))")
    case CURLE_GOT_NOTHING where transfer.isSent:
      return (.broken, "\(server) closed the connection without an answer, after \(transfer.sent) bytes were sent")
    case CURLE_PARTIAL_FILE where transfer.head.final != nil:
      return (.broken, "the connection broke in the middle of the answer, \(transfer.reached)")
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING:
      return (.broken, "the connection broke, \(transfer.reached)")
    default: return (.broken, "\(text), after \(transfer.sent) bytes were sent")
    }
  }

  /// No socket could be made, whoever is at the other end.
  private func descriptorProblem(_ transfer: Transfer, _ result: CURLcode) -> (TransportError.Code, String)? {
    guard result == CURLE_COULDNT_CONNECT, [EMFILE, ENFILE].contains(socketError) else { return nil }
    let words = String(cString: strerror(socketError)).lowercased()
    return (.connect, "no connection to \(transfer.server) can be made: \(words) (the limit is ulimit -n)")
  }

  private func tlsProblem(
    _ transfer: Transfer, _ result: CURLcode, _ text: String
  ) -> (TransportError.Code, String)? {
    // A proxy's own certificate comes before it is asked for a connection.
    let proxy = handle!.proxy.flatMap {
      $0.scheme == "https" && transfer.attempts == 0 && number(CURLINFO_HTTP_CONNECTCODE) == 0 ? $0 : nil
    }
    let server = proxy.map { "the proxy \($0)" } ?? transfer.server
    switch result {
    // A connection that ends during the handshake says nothing about certificates.
    case CURLE_SSL_CONNECT_ERROR where text.contains("SYSCALL") || text.contains("reset"):
      return Certificates.noneShown(by: server)
    case CURLE_SSL_CONNECT_ERROR where text.contains("wrong version number") || text.contains("packet length too long"):
      return Certificates.noneKnown(to: server)
    case CURLE_PEER_FAILED_VERIFICATION:
      let verdict = number(proxy == nil ? CURLINFO_SSL_VERIFYRESULT : CURLINFO_PROXY_SSL_VERIFYRESULT)
      if let problem = Certificates.problem(verdict, server, caFile: options.caFile) { return problem }
      guard text.contains("subject name") else { return (.tls, "\(text) (\(server))") }
      let host = proxy?.host ?? transfer.job.request.url.host
      return Certificates.isForAnother(than: host, server)
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT, CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      return Certificates.failure(text, server)
    default: return nil
    }
  }

  private func proxyProblem(
    _ transfer: Transfer, _ result: CURLcode, _ text: String
  ) -> (TransportError.Code, String)? {
    guard let proxy = handle!.proxy, transfer.attempts == 0 else { return nil }
    let server = transfer.server
    switch result {
    case CURLE_COULDNT_RESOLVE_PROXY: return (.resolve, "no address is known for the proxy \(proxy)")
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED:
      return (.connect, "\(systemError ?? text) (the proxy \(proxy))")
    case CURLE_OPERATION_TIMEDOUT:
      return (.connect, "\(tooLate(transfer)) through the proxy \(proxy)")
    case CURLE_PROXY:
      let isRefusal = [CURLPX_USER_REJECTED, CURLPX_NO_AUTH, CURLPX_REPLY_NOT_ALLOWED].contains {
        Int($0.rawValue) == number(CURLINFO_PROXY_ERROR)
      }
      return (isRefusal ? .proxy : .connect, "the proxy \(proxy) does not connect us to \(server): \(text)")
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
      return connectProblem(proxy, server, text)
    default: return nil
    }
  }

  /// The answer to CONNECT. RFC 9110 §9.3.6.
  private func connectProblem(_ proxy: Proxy, _ server: String, _ text: String) -> (TransportError.Code, String) {
    switch number(CURLINFO_HTTP_CONNECTCODE) {
    case 407 where proxy.hasCredentials: (.proxy, "the proxy \(proxy) does not take these credentials (407)")
    case 407: (.proxy, "the proxy \(proxy) asks for credentials (407)")
    case 0: (.connect, "the proxy \(proxy) closed the connection: \(text)")
    case let status where status / 100 == 5:
      (.connect, "the proxy \(proxy) cannot connect us to \(server) (\(status))")
    case let status: (.proxy, "the proxy \(proxy) refuses to connect us to \(server) (\(status))")
    }
  }
}

extension Transfer {
  /// `host:port`, for messages.
  var server: String { "\(job.request.url.host):\(job.request.url.port)" }

  /// How far the exchange was, for messages: what matters of a request without a body is how much of the answer has come.
  var reached: String {
    job.body == nil && received > 0 ? "after \(received) bytes had come" : "after \(sent) bytes were sent"
  }
}
