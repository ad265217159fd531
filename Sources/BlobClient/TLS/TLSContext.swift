import BlobHTTP
import CSSL
import Synchronization

/// TLS state that all connections of a transport share: trusted certificates, settings, and sessions to resume.
/// libcurl would build all of it again for each connection: 1.2 ms and 50 KiB.
final class TLSContext: Sendable {
  // OpenSSL counts the references, and locks what it changes.
  nonisolated(unsafe) private let context: OpaquePointer
  private let verifies: Bool
  /// Receives what is found out about each certificate; nil: certificates are verified as usual.
  let inspect: (@Sendable (CertificateReport) -> Void)?
  /// For each origin, the address of a retained `SSL_SESSION`; 0: sessions of this origin are not resumed.
  private let sessions = Mutex<[String: UInt]>([:])

  init(_ options: SocketTransport.Options) throws(TLSProblem) {
    guard let context = SSL_CTX_new(TLS_client_method()) else { throw TLSProblem(.tls, "TLS cannot be begun") }
    self.context = context
    inspect = options.inspectsCertificates
    verifies = options.verifiesTLS || inspect != nil
    SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_RELEASE_BUFFERS), nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    SSL_CTX_set_ciphersuites(context, Certificates.ciphers)
    let protocols = [8] + Array("http/1.1".utf8)
    SSL_CTX_set_alpn_protos(context, protocols, UInt32(protocols.count))
    SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
    SSL_CTX_set_cert_verify_callback(context, verifyCertificate, nil)
    if verifies { try trust(options.caFile) }
  }

  deinit {
    for session in sessions.withLock({ $0.values }) { release(session) }
    SSL_CTX_free(context)
  }

  private func trust(_ caFile: String?) throws(TLSProblem) {
    // As in libcurl, any trusted certificate may end a chain, whether or not it is a certificate authority.
    X509_STORE_set_flags(
      SSL_CTX_get_cert_store(context), UInt(X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN))
    let (file, folder) = caFile.map { ($0, nil) } ?? Certificates.places
    ERR_clear_error()
    if SSL_CTX_load_verify_locations(context, file, folder) == 1 { return }
    let place = file ?? folder ?? "no file and no folder"
    throw TLSProblem(.tls, "the certificates to trust cannot be read from \(place): \(lastWords())")
  }

  /// Creates a client connection on a socket, before the handshake; the caller must free it. nil: out of memory, or
  /// `name` is not valid. `goesOn`: the handshake will try to resume a session.
  /// - `name`: of the server, an IPv6 address without brackets. `origin`: selects the session to resume, if there is
  ///   one.
  func connection(to name: String, _ origin: String, on socket: Int32) -> (OpaquePointer, goesOn: Bool)? {
    guard let ssl = SSL_new(context) else { return nil }
    let isNumber = IPAddress(name) != nil
    var isSet = SSL_set_fd(ssl, socket) == 1
    if !isNumber {
      var name = Array(name.utf8CString)
      isSet =
        isSet && SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &name) == 1
    }
    if verifies {
      SSL_set_hostflags(ssl, hostFlags)
      let isNamed =
        isNumber ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) : SSL_set1_host(ssl, name)
      isSet = isSet && isNamed == 1
    }
    guard isSet else {
      SSL_free(ssl)
      return nil
    }
    let goesOn = sessions.withLock { sessions in
      guard let session = sessions[origin], session != 0 else { return false }
      return SSL_set_session(ssl, OpaquePointer(bitPattern: session)) == 1
    }
    return (ssl, goesOn)
  }

  /// Stops session resumption for this origin.
  func forgo(_ origin: String) {
    release(sessions.withLock { $0.updateValue(0, forKey: origin) })
  }

  private func release(_ session: UInt?) { SSL_SESSION_free(session.flatMap { OpaquePointer(bitPattern: $0) }) }

  /// Frees a connection without sending `close_notify`, and stores its session for the next connection.
  func free(_ ssl: OpaquePointer, _ origin: String) {
    // Otherwise OpenSSL regards the connection as broken, and its session as not resumable.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    let session = SSL_get1_session(ssl)
    SSL_free(ssl)
    guard let session else { return }
    let address = UInt(bitPattern: session)
    let isUseful = SSL_SESSION_is_resumable(session) == 1
    let spare = sessions.withLock { sessions in
      isUseful && sessions[origin] != 0 ? sessions.updateValue(address, forKey: origin) : address
    }
    release(spare)
  }
}

private let hostFlags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)

/// OpenSSL's verification, except that it uses the subject's common name of fewer certificates.
private func verifyCertificate(_ verification: OpaquePointer?, _ context: UnsafeMutableRawPointer?) -> Int32 {
  guard let verification else { return 0 }
  if let certificate = X509_STORE_CTX_get0_cert(verification), !mayNameHostBySubject(certificate) {
    X509_VERIFY_PARAM_set_hostflags(
      X509_STORE_CTX_get0_param(verification), hostFlags | UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
  }
  CertificateLog.attach(to: verification)
  return X509_verify_cert(verification)
}

/// Whether the subject's common name may be used as a host name. As in libcurl, it may only if no subject alternative
/// name is a DNS name or an IP address; OpenSSL alone ignores the IP addresses. A subject with several common names
/// is not used. RFC 6125 §6.4.4.
private func mayNameHostBySubject(_ certificate: OpaquePointer) -> Bool {
  let subject = X509_get_subject_name(certificate)
  let first = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
  if first < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, first) >= 0 { return false }
  if X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1) < 0 { return true }
  // Alternative names that cannot be decoded may contain host names.
  guard let names = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else { return false }
  let list = OpaquePointer(names)
  defer { GENERAL_NAMES_free(list) }
  return (0..<OPENSSL_sk_num(list)).allSatisfy { index in
    let name = OPENSSL_sk_value(list, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
    return name.map { $0.pointee.type != GEN_DNS && $0.pointee.type != GEN_IPADD } ?? false
  }
}

extension ConnectionPool {
  /// The TLS state for all connections, created on the first call.
  func tls() throws(TLSProblem) -> TLSContext {
    try context.withLock { context throws(TLSProblem) in
      if let context { return context }
      let made = try TLSContext(options)
      context = made
      return made
    }
  }
}

/// Why TLS failed. The message lacks the name of the request.
struct TLSProblem: Error {
  var code: TransportError.Code
  var words: String

  init(_ code: TransportError.Code, _ words: String) { (self.code, self.words) = (code, words) }
  init(_ problem: (TransportError.Code, String)) { (code, words) = problem }
}

/// The reason why the last OpenSSL call failed.
private func lastWords() -> String {
  let code = ERR_peek_last_error()
  return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
}

extension TLSProblem {
  /// The reason why a handshake with `server`, whose URL has `host`, failed, from OpenSSL's error queue. RFC 8446
  /// §6.2.
  init(_ ssl: OpaquePointer, _ server: String, _ host: String, caFile: String?) {
    let code = ERR_peek_error()
    let reason = ERR_GET_REASON(code)
    switch reason {
    case SSL_R_WRONG_VERSION_NUMBER, SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_HTTP_REQUEST:
      self.init(Certificates.noneKnown(to: server))
    case SSL_R_CERTIFICATE_VERIFY_FAILED: self.init(verdict: SSL_get_verify_result(ssl), server, host, caFile)
    // A connection that ends during the handshake says nothing about certificates.
    case _ where code == 0, SSL_R_UNEXPECTED_EOF_WHILE_READING:
      self.init(Certificates.noneShown(by: server))
    default: self.init(Certificates.failure(lastWords(), server))
    }
  }

  private init(verdict: Int, _ server: String, _ host: String, _ caFile: String?) {
    if let problem = Certificates.problem(verdict, server, caFile: caFile) {
      self.init(problem)
    } else if [Int(X509_V_ERR_HOSTNAME_MISMATCH), Int(X509_V_ERR_IP_ADDRESS_MISMATCH)].contains(verdict) {
      self.init(Certificates.isForAnother(than: host, server))
    } else {
      self.init(.tls, "\(String(cString: X509_verify_cert_error_string(verdict))) (\(server))")
    }
  }
}
