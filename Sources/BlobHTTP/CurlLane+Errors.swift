import Blobs
import CCurl

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

extension CurlLane {
  /// libcurl's verdict in our terms: operation, place, its own words, and how far the body was.
  func error(_ transfer: Transfer, _ result: CURLcode) -> TransportError {
    let text = errorText[0] == 0 ? String(cString: curl_easy_strerror(result)) : String(cString: errorText)
    let code = code(result, text)
    return TransportError(code, "\(transfer.job.name): \(words(code, text, transfer))")
  }

  private func code(_ result: CURLcode, _ text: String) -> TransportError.Code {
    switch result {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .resolve
    case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY: .connect
    case CURLE_OPERATION_TIMEDOUT: .timeout
    // A connection that ends during the handshake says nothing about certificates.
    case CURLE_SSL_CONNECT_ERROR where text.contains("SYSCALL") || text.contains("reset"): .broken
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
      CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      .tls
    case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING,
      CURLE_WRITE_ERROR:
      .badResponse
    case CURLE_URL_MALFORMAT: .badRequest
    default: .broken
    }
  }

  private func words(_ code: TransportError.Code, _ text: String, _ transfer: Transfer) -> String {
    let url = transfer.job.request.url
    var number = 0
    fb_curl_get_long(easy, CURLINFO_OS_ERRNO, &number)
    switch code {
    case .connect where number != 0:
      return "\(String(cString: strerror(Int32(number))).lowercased()) (\(url.host):\(url.port))"
    case .timeout: return "no connection within \(options.connect) (\(url.host):\(url.port)): \(text)"
    case .broken, .badResponse: return "\(text), after \(transfer.sent) bytes were sent"
    default: return "\(text) (\(url.host):\(url.port))"
    }
  }
}
