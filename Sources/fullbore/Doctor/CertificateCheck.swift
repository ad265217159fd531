import BlobClient
import BlobHTTP
import Synchronization

/// Whether the certificate of the server can be trusted, and for how long.
struct CertificateCheck: Sendable {
  let target: DoctorTarget
  private var url: HTTPURL { target.endpoint }
  private var server: String { "\(url.host):\(url.port)" }

  /// Certificates are usually renewed 30 days before they expire.
  private static let soon: Int64 = 14 * 86_400

  /// Connects without verification, and sends no secret. Returns whether requests with credentials may follow.
  func run(_ options: SocketTransport.Options) async -> Bool {
    let record = Record()
    var inspecting = options
    inspecting.inspectsCertificates = { report in record.report.withLock { $0 = report } }
    do throws(TransportError) {
      // The path and the query may be secrets, and whoever answers is not verified.
      let root = HTTPURL(url.origin + "/") ?? url
      let response = try await SocketTransport(inspecting).send(HTTPRequest("OPTIONS", root), body: nil, Exchange())
      target.report.noteProgram(ServerProgram(of: response))
    } catch {
      // Without a report, the handshake itself has failed.
      if record.report.withLock({ $0 == nil }) {
        guard error.code == .tls || error.code == .untrusted || error.code == .broken else { return true }
        target.report.found(handshakeFailure(error))
        return false
      }
    }
    guard let report = record.report.withLock({ $0 }) else {
      target.report.note("tls", "the certificate was not examined: the connection is inside the TLS of a proxy")
      return true
    }
    let findings = findings(report)
    for finding in findings { target.report.found(finding) }
    if findings.isEmpty {
      let days = report.secondsLeft.map { ", valid for \(Quantity.plural(Int(clamping: $0 / 86_400), "day"))" } ?? ""
      target.report.fine("tls", "the certificate for '\(report.subject)' by '\(report.issuer)' is trusted\(days)")
    }
    return report.problems.isEmpty || !options.verifiesTLS
  }

  /// The report of the handshake, which comes on a thread of the transport.
  private final class Record: Sendable {
    let report = Mutex<CertificateReport?>(nil)
  }

  private func handshakeFailure(_ error: TransportError) -> Finding {
    Finding(
      kind: .tlsHandshake, what: error.message, consequence: "No upload can begin: no connection is secured.",
      mends: [
        Mend(
          .nginx, in: "in the server block", "listen \(url.port) ssl;", "ssl_protocols TLSv1.2 TLSv1.3;"),
        Mend(.apache, in: "in the virtual host", "SSLEngine on", "SSLProtocol -all +TLSv1.2 +TLSv1.3"),
        Mend(.haproxy, in: "in the frontend", "bind :\(url.port) ssl crt /etc/haproxy/\(url.host).pem"),
        .advice(.caddy, "name the site \(url.host) without http:// before it, and it gets a certificate by itself."),
      ])
  }

  /// The problems in the words of a person; one problem of a chain has several codes.
  func findings(_ report: CertificateReport) -> [Finding] {
    var found: [Finding] = []
    let (codes, certificate) = (Set(report.problems.map(\.code)), "the certificate of \(server)")
    let refused = "Clients that verify certificates refuse to send anything; fullbore is one, without --insecure."
    if codes.contains(18) || (report.isSelfSigned && !codes.isDisjoint(with: [19, 20, 21])) {
      found.append(
        Finding(
          kind: .tlsSelfSigned, what: "\(certificate) is self-signed, by '\(report.issuer)'", consequence: refused,
          mends: Self.renewal(url.host)
            + [.advice(nil, "trust it here, if it is the right one: --cacert FILE, with the certificate in FILE.")]))
    } else if let missing = report.problems.first(where: { [19, 20, 21, 2].contains($0.code) }) {
      found.append(
        missing.depth == 0 && report.sentCount <= 1
          ? incompleteChain(report, refused)
          : Finding(
            kind: .tlsAuthority,
            what: "\(certificate) comes from an authority that nothing here vouches for (it was issued by "
              + "'\(report.issuer)', and the server has sent \(report.sentCount) certificates)",
            consequence: refused,
            mends: Self.renewal(url.host)
              + [.advice(nil, "trust the authority here: --cacert FILE, with its certificate in FILE.")]))
    }
    if codes.contains(10) {
      let days = report.secondsLeft.flatMap {
        $0 < 0 ? " \(Quantity.plural(Int(clamping: -$0 / 86_400), "day")) ago" : nil
      }
      found.append(
        Finding(
          kind: .tlsExpired, what: "\(certificate), or one above it, has expired\(days ?? "")", consequence: refused,
          mends: Self.renewal(url.host)))
    } else if let left = report.secondsLeft, left < Self.soon {
      found.append(
        Finding(
          kind: .tlsExpiresSoon,
          what: "\(certificate) expires in \(Quantity.plural(Int(clamping: left / 86_400), "day"))",
          consequence: "From then on clients refuse to send anything, in the middle of an upload that takes so long.",
          mends: Self.renewal(url.host)))
    }
    if codes.contains(9) {
      found.append(
        Finding(
          kind: .tlsNotYetValid, what: "\(certificate), or one above it, is not valid yet", consequence: refused,
          mends: [.advice(nil, "set the clock of this machine right, or that of the one that made the certificate.")]))
    }
    if codes.contains(62) || codes.contains(64) {
      found.append(
        Finding(
          kind: .tlsName, what: "\(certificate) is for '\(report.subject)' or other names, and not for '\(url.host)'",
          consequence: refused,
          mends: Self.renewal(url.host) + [.advice(nil, "use a name in the URL that the certificate is for.")]))
    }
    // A certificate that expires soon is trusted until then, so this does not say why it is not trusted now.
    if found.allSatisfy({ $0.kind == .tlsExpiresSoon }), let code = codes.min() {
      let words = CertificateReport.words(code)
      found.append(Finding(kind: .tlsOther, what: "\(certificate): \(words)", consequence: refused))
    }
    return found
  }

  private func incompleteChain(_ report: CertificateReport, _ refused: String) -> Finding {
    Finding(
      kind: .tlsChain,
      what:
        "the certificate of \(server) was issued by '\(report.issuer)', which is not trusted here by itself, and the server "
        + "does not send the certificate of that issuer: its file has the last certificate only, instead of the chain. "
        + "(If '\(report.issuer)' is an authority of your own, it is merely unknown here: --cacert FILE)",
      consequence: refused + " Browsers may still work, since they remember issuers from other sites.",
      isMeasured: false,
      mends: [
        Mend(
          .nginx, in: "in the server block",
          "ssl_certificate /etc/letsencrypt/live/\(url.host)/fullchain.pem;  # and not cert.pem"),
        Mend(
          .apache, in: "in the virtual host",
          "SSLCertificateFile /etc/letsencrypt/live/\(url.host)/fullchain.pem"),
        .advice(.haproxy, "the file of crt has the certificate, the chain and the key, in this order."),
        .advice(.caddy, "give 'tls' the file with the chain, fullchain.pem."),
      ])
  }

  private static func renewal(_ host: String) -> [Mend] {
    [
      .advice(.nginx, "certbot --nginx -d \(host)"), .advice(.apache, "certbot --apache -d \(host)"),
      .advice(.haproxy, "renew the file of crt with certbot certonly -d \(host), then reload haproxy."),
      .advice(.caddy, "caddy renews by itself: its log says why it could not."),
    ]
  }
}
