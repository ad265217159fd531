import Blobs
import CGnuTLS
import CMicrohttpd
import Platform

/// A certificate and its key, as text that GnuTLS understands: what is wrong with them is said here, since
/// libmicrohttpd would only not start.
final class TLSIdentity: Sendable {
  private let certificate: [UInt8]
  private let key: [UInt8]

  /// Throws for a file that cannot be read, is not what it should be, or does not belong to the other. Nothing of what
  /// is in them shows in a message.
  init(_ files: TLSFiles) throws(ServerError) {
    if MHD_is_feature_supported(.FEATURE_TLS) != .YES { throw ServerError("this libmicrohttpd was built without TLS") }
    certificate = try Self.read(files.certificate, "the certificate")
    key = try Self.read(files.key, "the key")
    try Self.check(certificate.withCString(fb_tls_check_certificate), "the certificate \(files.certificate)")
    try Self.check(key.withCString(fb_tls_check_key), "the key \(files.key)")
    let status = certificate.withCString { certificate in key.withCString { fb_tls_check_pair(certificate, $0) } }
    try Self.check(status, "the certificate \(files.certificate) with the key \(files.key)")
  }

  /// The certificate and the key, each with a NUL at its end.
  func withText<Result>(_ body: (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Result) -> Result {
    certificate.withCString { certificate in key.withCString { body(certificate, $0) } }
  }

  private static func check(_ status: Int32, _ what: String) throws(ServerError) {
    if status < 0 { throw ServerError("\(what) cannot be used: \(String(cString: gnutls_strerror(status)))") }
  }

  private static func read(_ path: BytePath, _ what: String) throws(ServerError) -> [UInt8] {
    let most = 1 << 20
    let number = path.withCString { openAt(AT_FDCWD, $0, O_RDONLY | O_CLOEXEC) }
    if number < 0 { throw failed("open \(what)", path.description) }
    let file = Descriptor(number)
    var bytes = [UInt8](repeating: 0, count: most)
    let count = bytes.withUnsafeMutableBytes { pread(file.number, $0.baseAddress!, $0.count, 0) }
    if count < 0 { throw failed("read \(what)", path.description) }
    if count == 0 || count == most { throw ServerError("\(what) \(path) cannot be used: it has \(count) bytes") }
    return Array(bytes[..<count]) + [0]
  }
}

extension [UInt8] {
  /// What ends with a NUL.
  fileprivate func withCString<Result>(_ body: (UnsafePointer<CChar>) -> Result) -> Result {
    withUnsafeBytes { body($0.baseAddress!.assumingMemoryBound(to: CChar.self)) }
  }
}
