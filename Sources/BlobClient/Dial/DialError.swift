import BlobHTTP
import CCurl
import Platform

/// Describes why libcurl could not make a connection.
struct DialFailure {
  private let dialer: Dialer
  private let transfer: Transfer
  private let proxy: Proxy?
  private let result: CURLcode
  private let options: SocketTransport.Options
  private let text: String
  /// The message for the case that the connect timeout was reached.
  private var tooLate: String { Self.tooLate(transfer, dialer.route, options) }
  private var server: String { transfer.server }

  init(
    _ dialer: Dialer, _ transfer: Transfer, _ proxy: Proxy?, _ result: CURLcode, _ options: SocketTransport.Options
  ) {
    (self.dialer, self.transfer, self.proxy, self.result, self.options) = (dialer, transfer, proxy, result, options)
    text = dialer.words.isEmpty ? String(cString: curl_easy_strerror(result)) : dialer.words
  }

  /// A message with operation, place and reason.
  var error: TransportError {
    let (code, words) = descriptorProblem ?? proxyProblem ?? tlsProblem ?? other
    // A connection that is closed during the TLS handshake has brought no response either.
    return TransportError(code, "\(transfer.job.name): \(words)", isUnanswered: code == .broken)
  }

  static func tooLate(_ transfer: Transfer, _ route: Route, _ options: SocketTransport.Options) -> String {
    "no connection to \(transfer.server) within \(options.connect)"
      + ((route.proxy ?? route.relay).map { " through the proxy \($0)" } ?? "")
  }

  /// The system's message for libcurl's `CURLINFO_OS_ERRNO`; nil: libcurl reports no error number.
  private var systemError: String? {
    let number = dialer.number(CURLINFO_OS_ERRNO)
    return number == 0 ? nil : String(cString: strerror(Int32(number))).lowercased()
  }

  private var other: (TransportError.Code, String) {
    switch result {
    case CURLE_COULDNT_RESOLVE_HOST: (.resolve, "no address is known for \(transfer.job.request.url.host)")
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: (.connect, "\(systemError ?? text) (\(server))")
    case CURLE_OPERATION_TIMEDOUT where text.hasPrefix("Resolving"):
      (.resolve, "no address for \(transfer.job.request.url.host) within \(options.connect)")
    case CURLE_OPERATION_TIMEDOUT: (.connect, tooLate)
    case CURLE_URL_MALFORMAT: (.badRequest, "\(text) (\(server))")
    default: (.broken, "\(text) (\(server))")
    }
  }

  /// The process or the system has no descriptors left, so no socket could be made.
  private var descriptorProblem: (TransportError.Code, String)? {
    guard result == CURLE_COULDNT_CONNECT, [EMFILE, ENFILE].contains(dialer.socketError) else { return nil }
    let words = String(cString: strerror(dialer.socketError)).lowercased()
    return (.connect, "no connection to \(server) can be made: \(words) (the limit is ulimit -n)")
  }

  /// Covers only TLS inside the TLS of a proxy: all other TLS does not use libcurl.
  private var tlsProblem: (TransportError.Code, String)? {
    // The certificate of an https proxy is verified before the CONNECT request.
    let proxy = proxy.flatMap { $0.scheme == "https" && dialer.number(CURLINFO_HTTP_CONNECTCODE) == 0 ? $0 : nil }
    let server = proxy.map { "the proxy \($0)" } ?? server
    switch result {
    // A connection that ends during the handshake says nothing about certificates.
    case CURLE_SSL_CONNECT_ERROR where text.contains("SYSCALL") || text.contains("reset"):
      return Certificates.noneShown(by: server)
    case CURLE_SSL_CONNECT_ERROR where text.contains("wrong version number") || text.contains("packet length too long"):
      return Certificates.noneKnown(to: server)
    case CURLE_PEER_FAILED_VERIFICATION:
      let verdict = dialer.number(proxy == nil ? CURLINFO_SSL_VERIFYRESULT : CURLINFO_PROXY_SSL_VERIFYRESULT)
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

  private var proxyProblem: (TransportError.Code, String)? {
    guard let proxy else { return nil }
    // For a proxy that forwards plain http requests, libcurl connects to the proxy as if it were the server.
    let isDialled = dialer.route.relay != nil
    switch result {
    case CURLE_COULDNT_RESOLVE_PROXY: return (.resolve, "no address is known for the proxy \(proxy)")
    case CURLE_COULDNT_RESOLVE_HOST where isDialled: return (.resolve, "no address is known for the proxy \(proxy)")
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED:
      return (.connect, "\(systemError ?? text) (the proxy \(proxy))")
    case CURLE_OPERATION_TIMEDOUT:
      return (.connect, tooLate)
    case CURLE_PROXY:
      let isRefusal = [CURLPX_USER_REJECTED, CURLPX_NO_AUTH, CURLPX_REPLY_NOT_ALLOWED].contains {
        Int($0.rawValue) == dialer.number(CURLINFO_PROXY_ERROR)
      }
      return (isRefusal ? .proxy : .connect, "the proxy \(proxy) does not connect us to \(server): \(text)")
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING:
      return connectProblem(proxy)
    default: return nil
    }
  }

  /// Describes a failed CONNECT request. RFC 9110 §9.3.6.
  private func connectProblem(_ proxy: Proxy) -> (TransportError.Code, String) {
    switch dialer.number(CURLINFO_HTTP_CONNECTCODE) {
    case 407 where proxy.hasCredentials: (.proxy, "the proxy \(proxy) does not take these credentials (407)")
    case 407: (.proxy, "the proxy \(proxy) asks for credentials (407)")
    case 0: (.connect, "the proxy \(proxy) closed the connection: \(text)")
    case let status where status / 100 == 5:
      (.connect, "the proxy \(proxy) cannot connect us to \(server) (\(status))")
    case let status: (.proxy, "the proxy \(proxy) refuses to connect us to \(server) (\(status))")
    }
  }
}
