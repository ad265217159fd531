import Foundation
import Platform
import Testing

/// A proxy of another project in front of a server, configured for uploads except for the given lines.
enum DoctorFront: String, Sendable, CaseIterable {
  case nginx
  case apache = "apache2"
  case haproxy
  case caddy

  /// Where lines are added.
  enum Place: Sendable {
    /// Where the proxy serves the path.
    case location
    /// In the server, the virtual host, or the defaults of haproxy.
    case server
  }

  var path: String? { Tool.find(rawValue) }
  /// As the doctor names it.
  var name: String { self == .apache ? "Apache" : self == .caddy ? "Caddy" : rawValue }

  /// Starts the proxy. `path` is the path it serves; what follows goes to the server behind it.
  func start(
    behind port: Int, path: String = "/", _ lines: [String], at place: Place = .location,
    secure certificate: TestCertificate? = nil, in scratch: Scratch
  ) async throws -> PeerServer {
    let program = try #require(self.path, "\(rawValue) is not installed: scripts/bootstrap test")
    let run = scratch.newPath(rawValue)
    try FileManager.default.createDirectory(atPath: run, withIntermediateDirectories: true)
    if getuid() == 0 { for path in [scratch.path, run] { chmod(path, 0o777) } }
    let text = lines.joined(separator: "\n")
    let added = (location: place == .location ? text : "", server: place == .server ? text : "")
    // Caddy writes into the user's own folder.
    let isCaddy = self == .caddy
    return try await PeerServer(
      isCaddy ? "/usr/bin/env" : program, scheme: certificate == nil ? "http" : "https", in: scratch
    ) { own in
      let file = run + "/configuration"
      let configuration =
        switch self {
        case .nginx: Self.nginx(own, port, path, added, certificate, run)
        case .apache: Self.apache(own, port, path, added, run)
        case .haproxy: Self.haproxy(own, port, added)
        case .caddy: Self.caddy(own, port, added)
        }
      try configuration.write(toFile: file, atomically: true, encoding: .utf8)
      return switch self {
      case .nginx: ["-p", run, "-c", file, "-e", "stderr"]
      // One process with all threads: its workers would outlive a process that is killed.
      case .apache: ["-f", file, "-X"]
      case .haproxy: ["-f", file, "-db"]
      case .caddy: ["HOME=\(run)", program, "run", "--adapter", "caddyfile", "--config", file]
      }
    }
  }

  /// A setting that the added lines contain too would be given twice, which nginx refuses.
  private static func setting(_ line: String, unlessIn added: (location: String, server: String)) -> String {
    let name = line.prefix { $0 != " " }
    return (added.location + added.server).contains(name) ? "" : line
  }

  private static func nginx(
    _ own: Int, _ port: Int, _ path: String, _ added: (location: String, server: String),
    _ certificate: TestCertificate?, _ run: String
  ) -> String {
    let settings = ["client_max_body_size 0;", "proxy_request_buffering off;", "proxy_http_version 1.1;"]
      .map { setting($0, unlessIn: added) }.joined(separator: "\n")
    return PeerServer.nginxConfiguration(
      in: run, own, certificate,
      """
      \(added.server)
      location \(path) {
        \(settings)
        proxy_pass http://127.0.0.1:\(port)/;
        \(added.location)
      }
      """)
  }

  private static func apache(
    _ own: Int, _ port: Int, _ path: String, _ added: (location: String, server: String), _ run: String
  ) -> String {
    let modules = [
      "mpm_event", "authz_core", "proxy", "proxy_http", "headers", "reqtimeout", "allowmethods", "setenvif", "env",
    ]
    return """
      ServerRoot \(run)
      ServerName localhost
      Listen 127.0.0.1:\(own)
      PidFile \(run)/pid
      ErrorLog /dev/stderr
      LogLevel error
      \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
      \(getuid() == 0 ? "User www-data\nGroup www-data" : "")
      Mutex pthread
      \(setting("LimitRequestBody 0", unlessIn: added))
      \(added.server)
      <Location \(path)>
        ProxyPass http://127.0.0.1:\(port)/
        \(added.location)
      </Location>
      """
  }

  private static func haproxy(
    _ own: Int, _ port: Int, _ added: (location: String, server: String)
  ) -> String {
    let timeouts = ["timeout client 60s", "timeout server 60s"]
      .filter { !added.server.contains($0.split(separator: " ").prefix(2).joined(separator: " ")) }
    return """
      global
        maxconn 256
      defaults
        mode http
        timeout connect 5s
        \(timeouts.joined(separator: "\n  "))
        \(added.server)
      frontend in
        bind 127.0.0.1:\(own)
        \(added.location)
        default_backend out
      backend out
        server one 127.0.0.1:\(port)

      """
  }

  private static func caddy(_ own: Int, _ port: Int, _ added: (location: String, server: String)) -> String {
    """
    {
      admin off
      auto_https off
    }
    http://127.0.0.1:\(own) {
      \(added.server)
      reverse_proxy 127.0.0.1:\(port) {
        \(added.location)
      }
    }

    """
  }
}

/// A run of the doctor with `--json`.
struct DoctorRun {
  struct Finding {
    let kind: String
    let what: String
    let consequence: String
    let isMeasured: Bool
    /// For each program, the lines to add; advice is left out.
    let lines: [(program: String?, lines: [String])]
  }
  let end: Command.End
  let findings: [Finding]
  /// Everything that was printed, for messages.
  let text: String

  var kinds: [String] { findings.map(\.kind) }

  /// The lines that mend the first finding of this kind, for a program.
  func lines(_ kind: String, for program: String) -> [String] {
    findings.first { $0.kind == kind }?.lines.first { $0.program == program }?.lines ?? []
  }

  init(
    _ url: String, _ options: [String] = ["--yes", "--pause", "1s"], environment: [String: String] = [:],
    in scratch: Scratch
  ) async throws {
    let command = try Command(
      Tool.fullbore, ["doctor", "--json"] + options + [url], in: scratch, environment: environment)
    end = try await command.wait()
    text = command.output + command.errors
    findings = try command.output.split(separator: "\n").compactMap { line in
      let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      guard object["event"] as? String == "finding" else { return nil }
      let mends = object["mend"] as? [[String: Any]] ?? []
      return Finding(
        kind: object["kind"] as? String ?? "", what: object["what"] as? String ?? "",
        consequence: object["consequence"] as? String ?? "", isMeasured: object["measured"] as? Bool ?? false,
        lines: mends.compactMap { mend in
          (mend["lines"] as? String).map { (mend["program"] as? String, $0.components(separatedBy: "\n")) }
        })
    }
  }
}
