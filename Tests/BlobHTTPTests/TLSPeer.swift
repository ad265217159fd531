import BlobHTTP
import BlobTesting
import Blobs
import Testing

/// A certificate and its key, in files made by the openssl command.
class Certificate: @unchecked Sendable {  // immutable
  fileprivate let folder = TemporaryFolder()
  var path: String { folder.path + "/cert.pem" }
  var key: String { folder.path + "/key.pem" }

  /// A self-signed certificate for 127.0.0.1.
  init() throws {
    try openssl(["req", "-x509", "-days", "2", "-addext", "subjectAltName=IP:127.0.0.1", "-out", path] + newKey)
  }

  fileprivate init(empty: Void) {}

  fileprivate var newKey: [String] { newKey(of: "/CN=fullbore test") }

  fileprivate func newKey(of subject: String) -> [String] {
    let kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    return kind + ["-subj", subject, "-keyout", key]
  }
}

/// A certificate authority.
final class Authority: Certificate, @unchecked Sendable {
  /// Signs a certificate. `names` has the syntax of subjectAltName, `DNS:a.example,IP:127.0.0.1`; nil: the certificate
  /// has only a subject. With days below 0 it has expired. `usage` has the syntax of extendedKeyUsage; nil: any.
  func certificate(
    for names: String?, days: Int = 2, subject: String = "/CN=fullbore test", usage: String? = nil
  ) throws -> Certificate {
    let certificate = Certificate(empty: ())
    let request = certificate.folder.path + "/request.pem"
    let names = names.map { ["-addext", "subjectAltName=\($0)"] } ?? []
    let usage = usage.map { ["-addext", "extendedKeyUsage=\($0)"] } ?? []
    try openssl(["req", "-new", "-out", request] + names + usage + certificate.newKey(of: subject))
    try openssl([
      "x509", "-req", "-in", request, "-CA", path, "-CAkey", key, "-CAserial", certificate.folder.path + "/serial",
      "-CAcreateserial", "-copy_extensions", "copy", "-days", "\(days)", "-out", certificate.path,
    ])
    return certificate
  }
}

private func openssl(_ arguments: [String]) throws {
  try #require(Command(["openssl"] + arguments).wait() == 0, "openssl \(arguments[0]) fails")
}

/// `openssl s_server`: it responds to GET with its own page, or passes bytes in both directions.
final class OpenSSLServer: Sendable {
  let port: Int
  fileprivate let command: Command
  var url: HTTPURL { HTTPURL("https://127.0.0.1:\(port)/a")! }

  init(_ certificate: Certificate, answers: Bool = true, _ options: [String] = []) {
    let (listener, port) = Loopback.listen()
    Loopback.close(listener)
    self.port = port
    command = Command(
      [
        "openssl", "s_server", "-quiet", "-accept", "127.0.0.1:\(port)", "-cert", certificate.path,
        "-key", certificate.key,
      ] + (answers ? ["-www"] : []) + options)
    // The server prints nothing when it is ready.
    while true {
      if let socket = Loopback.connect(port: port) {
        Loopback.close(socket)
        return
      }
      pauseThread(milliseconds: 5)
    }
  }

  /// A thread that reads what the server prints keeps `command`, and ends with the server.
  deinit { command.end() }

  func send(_ text: String) { command.write(text) }

  /// true once `enough` accepts the received bytes; false if the server ended before.
  func receive(_ enough: @escaping @Sendable ([UInt8]) -> Bool) async -> Bool {
    await withCheckedContinuation { done in
      SystemThread.start("tls-peer") { [command] in
        var received: [UInt8] = []
        while !enough(received) {
          let more = readSome(command.output)
          if more.isEmpty { return done.resume(returning: false) }
          received += more
        }
        done.resume(returning: true)
      }
    }
  }
}

/// `openssl s_server` in front of a plain server; one connection at a time.
final class TLSWrapped: Sendable {
  private let server: OpenSSLServer
  var port: Int { server.port }

  init(_ certificate: Certificate, to target: Int) {
    server = OpenSSLServer(certificate, answers: false)
    SystemThread.start("tls-wrapped") { [command = server.command] in
      // If the previous connection has ended, the bytes belong to a new one.
      var inner: Int32?
      while case let bytes = readSome(command.output), !bytes.isEmpty {
        if let socket = inner, !bytes.withUnsafeBytes({ Loopback.write(socket, $0) }) { inner = nil }
        if inner == nil, let socket = Loopback.connect(port: target) {
          inner = socket
          _ = bytes.withUnsafeBytes { Loopback.write(socket, $0) }
          SystemThread.start("tls-wrapped-back") {
            while case let answer = readSome(socket), !answer.isEmpty { command.write(answer) }
            Loopback.shut(socket)
          }
        }
      }
    }
  }
}
