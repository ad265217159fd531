import CSSL

/// The facts that a TLS handshake tells about the certificate of a server, whether or not it can be trusted.
package struct CertificateReport: Sendable {
  /// A reason why the certificate, or one above it, is not trusted.
  package struct Problem: Sendable, Hashable {
    /// OpenSSL's result code. X509_STORE_CTX_get_error(3).
    package var code: Int
    /// 0: the server's own certificate; 1: that of its issuer, and so on.
    package var depth: Int

    package init(code: Int, depth: Int) { (self.code, self.depth) = (code, depth) }
  }

  /// All reasons, in the order in which OpenSSL found them; empty: the certificate is trusted.
  package var problems: [Problem]
  /// The names of its owner and of its issuer. The server chooses them, so they may contain anything.
  package var subject, issuer: String
  /// The certificate is signed by its own key.
  package var isSelfSigned: Bool
  /// The number of certificates that the server has sent.
  package var sentCount: Int
  /// Seconds until the certificate expires, negative if it has expired; nil: its date cannot be read.
  package var secondsLeft: Int64?

  package init(
    problems: [Problem], subject: String, issuer: String, isSelfSigned: Bool, sentCount: Int, secondsLeft: Int64?
  ) {
    (self.problems, self.subject, self.issuer) = (problems, subject, issuer)
    (self.isSelfSigned, self.sentCount, self.secondsLeft) = (isSelfSigned, sentCount, secondsLeft)
  }

  /// OpenSSL's text for a result code.
  package static func words(_ code: Int) -> String { String(cString: X509_verify_cert_error_string(code)) }
}

/// Collects all problems of a certificate during one handshake, which continues in spite of them.
final class CertificateLog {
  private let ssl: OpaquePointer
  private var problems: [CertificateReport.Problem] = []
  /// A hostile chain could otherwise fill the memory.
  private static let most = 64

  /// Attaches the log to a connection before its handshake. `end` must be called before either is freed.
  init(of ssl: OpaquePointer) {
    self.ssl = ssl
    SSL_set_ex_data(ssl, Self.index, Unmanaged.passUnretained(self).toOpaque())
  }

  func end() { SSL_set_ex_data(ssl, Self.index, nil) }

  /// The index that OpenSSL reserves for the application.
  private static let index: Int32 = 0

  /// nil: the server has sent no certificate.
  func report() -> CertificateReport? {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return nil }
    defer { X509_free(certificate) }
    var (days, seconds): (Int32, Int32) = (0, 0)
    let isDated = ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(certificate)) == 1
    let (subject, issuer) = (X509_get_subject_name(certificate), X509_get_issuer_name(certificate))
    return CertificateReport(
      problems: problems, subject: Self.text(subject), issuer: Self.text(issuer),
      isSelfSigned: X509_NAME_cmp(subject, issuer) == 0,
      sentCount: SSL_get_peer_cert_chain(ssl).map { Int(OPENSSL_sk_num($0)) } ?? 0,
      secondsLeft: isDated ? Int64(days) * 86_400 + Int64(seconds) : nil)
  }

  /// The common name, or everything if there is none.
  private static func text(_ name: OpaquePointer?) -> String {
    guard let name else { return "" }
    var room = [CChar](repeating: 0, count: 256)
    if X509_NAME_get_text_by_NID(name, NID_commonName, &room, Int32(room.count)) <= 0 {
      X509_NAME_oneline(name, &room, Int32(room.count))
    }
    return String(decoding: room.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Makes the verification report its problems to the log of its connection, if that has one.
  static func attach(to verification: OpaquePointer) {
    if of(verification) != nil { X509_STORE_CTX_set_verify_cb(verification, noteProblem) }
  }

  fileprivate static func of(_ verification: OpaquePointer) -> CertificateLog? {
    let ssl = X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx())
    guard let ssl, let data = SSL_get_ex_data(OpaquePointer(ssl), index) else { return nil }
    return Unmanaged<CertificateLog>.fromOpaque(data).takeUnretainedValue()
  }

  fileprivate func note(_ problem: CertificateReport.Problem) {
    if problems.count < Self.most, !problems.contains(problem) { problems.append(problem) }
  }
}

/// Called by OpenSSL for each step of a verification. Returns 1 to continue.
private func noteProblem(_ isFine: Int32, _ verification: OpaquePointer?) -> Int32 {
  guard isFine == 0, let verification else { return isFine }
  guard let log = CertificateLog.of(verification) else { return 0 }
  log.note(
    .init(
      code: Int(X509_STORE_CTX_get_error(verification)), depth: Int(X509_STORE_CTX_get_error_depth(verification))))
  return 1
}
