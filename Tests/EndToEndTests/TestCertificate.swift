import Foundation
import Testing

/// A certificate and its key, made by the openssl command.
struct TestCertificate {
  let path: String
  let key: String

  /// A self-signed certificate that can also sign others.
  static func selfSigned(for names: String, in scratch: Scratch) async throws -> TestCertificate {
    let certificate = TestCertificate(path: scratch.newPath("certificate"), key: scratch.newPath("key"))
    try await openssl(
      ["req", "-x509", "-days", "2", "-addext", "subjectAltName=\(names)", "-out", certificate.path]
        + certificate.newKey, in: scratch)
    return certificate
  }

  /// A certificate signed by this one; `names` has the syntax of subjectAltName.
  func signed(for names: String, in scratch: Scratch) async throws -> TestCertificate {
    let certificate = TestCertificate(path: scratch.newPath("certificate"), key: scratch.newPath("key"))
    let request = scratch.newPath("request")
    try await Self.openssl(
      ["req", "-new", "-addext", "subjectAltName=\(names)", "-out", request] + certificate.newKey, in: scratch)
    try await Self.openssl(
      [
        "x509", "-req", "-in", request, "-CA", path, "-CAkey", key, "-CAserial", scratch.newPath("serial"),
        "-CAcreateserial", "-copy_extensions", "copy", "-days", "2", "-out", certificate.path,
      ], in: scratch)
    return certificate
  }

  private var newKey: [String] {
    let kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    return kind + ["-subj", "/CN=nas", "-keyout", key]
  }

  private static func openssl(_ arguments: [String], in scratch: Scratch) async throws {
    let openssl = try #require(Tool.find("openssl"), "openssl is not installed: scripts/bootstrap test")
    let command = try Command(openssl, arguments, in: scratch)
    try #require(try await command.wait() == .exited(0), "\(command.errors)")
  }
}
