import Foundation
import Testing

extension EndToEnd {
  /// `fullbore doctor` with certificates that are wrong in every way.
  @Suite(.serialized) struct DoctorTLSTests {
    private let scratch = try! Scratch()

    /// How a certificate is wrong.
    enum Fault: String, CaseIterable, Sendable {
      case selfSigned, incompleteChain, unknownAuthority, expired, expiresSoon, anotherName

      var kind: String {
        switch self {
        case .selfSigned: "tls-self-signed"
        case .incompleteChain: "tls-chain"
        case .unknownAuthority: "tls-authority"
        case .expired: "tls-expired"
        case .expiresSoon: "tls-expires-soon"
        case .anotherName: "tls-name"
        }
      }
    }

    @Test(.needs(.nginx, .openssl), arguments: Fault.allCases) func tellsFaultsApart(_ fault: Fault) async throws {
      let run = try await examine(fault)
      #expect(run.kinds == [fault.kind], "\(run.text)")
      #expect(run.end == .exited(1))
      // Nothing is sent to a server that cannot be trusted; one whose certificate expires soon still can be.
      #expect(run.text.contains("\"check\":\"buffering\"") == (fault == .expiresSoon), "\(run.text)")
    }

    /// The same server with the right certificate, and the whole chain.
    @Test(.needs(.nginx, .openssl)) func findsNothingWrongWithTheRightCertificate() async throws {
      let run = try await examine(nil)
      #expect(run.kinds.isEmpty && run.end == .exited(0), "\(run.text)")
    }

    /// A path and a query may be secrets.
    @Test func sendsNoPathToAServerThatIsNotVerified() async throws {
      let log = scratch.path("log")
      let server = try await ServeProcess.start(in: scratch, "--tls", "self", "--log", log)
      let run = try await DoctorRun("put+\(server.url)a-secret-path/film.mov?sig=a-secret", in: scratch)
      #expect(run.kinds == ["tls-self-signed"] && run.end == .exited(1), "\(run.text)")
      server.command.kill(SIGTERM)
      try await server.command.wait()
      let lines = try String(contentsOfFile: log, encoding: .utf8)
      #expect(lines.contains("OPTIONS / ") && !lines.contains("a-secret"), "\(lines)")
    }

    @Test(.needs(.nginx)) func tellsAServerWithoutTLS() async throws {
      let server = try await ServeProcess.start(in: scratch)
      let proxy = try await DoctorFront.nginx.start(behind: server.port, [], in: scratch)
      let run = try await DoctorRun(proxy.url.replacingOccurrences(of: "http:", with: "https:") + "/", in: scratch)
      #expect(run.kinds == ["tls-handshake"] && run.end == .exited(1), "\(run.text)")
    }

    /// Examines nginx with a certificate.
    private func examine(_ fault: Fault?) async throws -> DoctorRun {
      let server = try await ServeProcess.start(in: scratch)
      let root = try await Authority.root(in: scratch)
      let middle = try await root.authority(in: scratch)
      let (day, now) = (86_400.0, Date())
      let end = fault == .expired ? now - day : fault == .expiresSoon ? now + 5 * day : now + 90 * day
      var certificate = try await middle.certificate(
        for: fault == .anotherName ? "DNS:other.example" : "IP:127.0.0.1", until: end, in: scratch)
      if fault == .selfSigned { certificate = try await Authority.root(for: "IP:127.0.0.1", in: scratch).certificate }
      if fault != .selfSigned, fault != .incompleteChain {
        let chain =
          try String(contentsOfFile: certificate.path, encoding: .utf8)
          + String(contentsOfFile: middle.certificate.path, encoding: .utf8)
        try chain.write(toFile: certificate.path, atomically: true, encoding: .utf8)
      }
      let proxy = try await DoctorFront.nginx.start(behind: server.port, [], secure: certificate, in: scratch)
      let trusts = fault != .unknownAuthority && fault != .selfSigned
      let options = ["--yes", "--pause", "1s"] + (trusts ? ["--cacert", root.certificate.path] : [])
      return try await DoctorRun(proxy.url + "/", options, in: scratch)
    }
  }
}

/// A certificate authority of a test, whose certificates are valid from yesterday, or earlier, to any day.
struct Authority {
  let certificate: TestCertificate

  /// `names`: those of a server with this certificate; nil: none.
  static func root(for names: String? = nil, in scratch: Scratch) async throws -> Authority {
    let made = TestCertificate(path: scratch.newPath("root"), key: scratch.newPath("key"))
    try await openssl(
      ["req", "-x509", "-days", "90", "-subj", "/CN=root", "-keyout", made.key, "-out", made.path] + newKey
        + (names.map { ["-addext", "subjectAltName=\($0)"] } ?? []), in: scratch)
    return Authority(certificate: made)
  }

  /// An authority below this one.
  func authority(in scratch: Scratch) async throws -> Authority {
    Authority(
      certificate: try await signed(
        "middle", ["basicConstraints=critical,CA:TRUE"], until: Date() + 90 * 86_400, in: scratch))
  }

  func certificate(for names: String, until end: Date, in scratch: Scratch) async throws -> TestCertificate {
    try await signed("nas", ["subjectAltName=\(names)"], until: end, in: scratch)
  }

  private func signed(
    _ name: String, _ extensions: [String], until end: Date, in scratch: Scratch
  ) async throws -> TestCertificate {
    let made = TestCertificate(path: scratch.newPath(name), key: scratch.newPath("key"))
    let (request, folder) = (scratch.newPath("request"), scratch.newPath("authority"))
    try await Self.openssl(
      ["req", "-new", "-subj", "/CN=\(name)", "-keyout", made.key, "-out", request] + Self.newKey
        + extensions.flatMap { ["-addext", $0] }, in: scratch)
    // `openssl ca` sets any dates, for which it wants a folder and a configuration.
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: folder + "/index"))
    try """
    [ca]
    default_ca = own
    [own]
    new_certs_dir = \(folder)
    database = \(folder)/index
    rand_serial = yes
    default_md = sha256
    policy = names
    copy_extensions = copy
    [names]
    commonName = supplied
    """.write(toFile: folder + "/configuration", atomically: true, encoding: .utf8)
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(identifier: "UTC")
    format.dateFormat = "yyyyMMddHHmmss'Z'"
    let begin = min(Date(), end) - 86_400
    try await Self.openssl(
      [
        "ca", "-batch", "-notext", "-config", folder + "/configuration", "-cert", certificate.path, "-keyfile",
        certificate.key, "-in", request, "-out", made.path, "-startdate", format.string(from: begin), "-enddate",
        format.string(from: end),
      ], in: scratch)
    return made
  }

  private static let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

  private static func openssl(_ arguments: [String], in scratch: Scratch) async throws {
    let openssl = try #require(Tool.find("openssl"), "openssl is not installed: scripts/bootstrap test")
    let command = try Command(openssl, arguments, in: scratch)
    try #require(try await command.wait() == .exited(0), "\(command.errors)")
  }
}
