import BlobCrypto
import Blobs
import Platform

#if os(Linux) || os(macOS)
  import CSSL

  /// A certificate that the server signs itself, and its key. Browsers warn of it, because nobody else vouches for it; a
  /// person can compare its fingerprint.
  public struct SelfSignedCertificate: Sendable {
    /// The file with certificate and key, as `ServerOptions.tls` takes it.
    public let files: TLSFiles
    /// The SHA-256 digest of the certificate, as browsers show it: `AB:CD:…`.
    public let fingerprint: String

    private static let daysValid = 397
    /// A certificate that ends sooner is made anew.
    private static let leastDaysLeft = 30

    /// Takes the certificate in the file `path` if it is valid for all `names`, which are host names and IP addresses,
    /// and for another month; otherwise makes a new one and writes it there, readable by the user only. This call
    /// blocks. Throws if the file cannot be written, or OpenSSL fails.
    public init(at path: BytePath, names: [String]) throws(ServerError) {
      files = TLSFiles(certificate: path, key: path)
      // Servers that start at the same time take turns, and all but the first one find its certificate.
      let lock = BytePath(path.bytes + ".lock".utf8)
      let number = lock.withCString { openAt(AT_FDCWD, $0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
      if number < 0 { throw failed("lock the certificate", lock.description) }
      let turn = Descriptor(number)
      if flock(turn.number, LOCK_EX) != 0 { throw failed("lock the certificate", lock.description) }
      if let known = Self.fingerprint(ofCertificateIn: path, for: names) {
        fingerprint = known
        return
      }
      let (text, fingerprint) = try Self.make(names)
      self.fingerprint = fingerprint
      try Self.write(text, to: path)
    }

    /// nil if there is none, or it is not good for these names any more.
    private static func fingerprint(ofCertificateIn path: BytePath, for names: [String]) -> String? {
      guard let text = try? TLSContext.read(path, "the certificate") else { return nil }
      return text.withUnsafeBytes { text in
        guard let file = BIO_new_mem_buf(text.baseAddress, Int32(text.count)) else { return nil }
        defer {
          BIO_free(file)
          ERR_clear_error()
        }
        return fingerprint(in: file, for: names)
      }
    }

    private static func fingerprint(in file: OpaquePointer, for names: [String]) -> String? {
      // The file has the key before the certificate.
      guard let key = PEM_read_bio_PrivateKey(file, nil, nil, nil) else { return nil }
      defer { EVP_PKEY_free(key) }
      guard let certificate = PEM_read_bio_X509(file, nil, nil, nil) else { return nil }
      defer { X509_free(certificate) }
      if X509_check_private_key(certificate, key) != 1 { return nil }
      var soon = time(nil) + leastDaysLeft * 86_400
      guard X509_cmp_time(X509_get0_notAfter(certificate), &soon) > 0 else { return nil }
      let isGood = names.allSatisfy {
        X509_check_ip_asc(certificate, $0, 0) == 1 || X509_check_host(certificate, $0, $0.utf8.count, 0, nil) == 1
      }
      return isGood ? fingerprint(of: certificate) : nil
    }

    private static func fingerprint(of certificate: OpaquePointer) -> String {
      var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
      var count: UInt32 = 0
      X509_digest(certificate, EVP_sha256(), &digest, &count)
      return digest.prefix(Int(count)).map { Digest.hex([$0]).uppercased() }.joined(separator: ":")
    }

    /// The key and the certificate as PEM, and the fingerprint.
    private static func make(_ names: [String]) throws(ServerError) -> (text: [UInt8], fingerprint: String) {
      guard let key = newKey() else { throw problem }
      defer { EVP_PKEY_free(key) }
      guard let certificate = X509_new() else { throw problem }
      defer { X509_free(certificate) }
      let isMade =
        X509_set_version(certificate, 2) == 1  // version 3 (RFC 5280 §4.1.2.1)
        && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), UInt64.random(in: 1...UInt64(Int64.max))) == 1
        // A phone's clock may be behind.
        && X509_gmtime_adj(X509_getm_notBefore(certificate), -86_400) != nil
        && X509_gmtime_adj(X509_getm_notAfter(certificate), daysValid * 86_400) != nil
        && X509_set_pubkey(certificate, key) == 1 && setNames(of: certificate, names)
        && X509_sign(certificate, key, EVP_sha256()) > 0
      guard isMade, let text = BIO_new(BIO_s_mem()) else { throw problem }
      defer { BIO_free(text) }
      guard PEM_write_bio_PrivateKey(text, key, nil, nil, 0, nil, nil) == 1, PEM_write_bio_X509(text, certificate) == 1
      else { throw problem }
      var room = [UInt8](repeating: 0, count: BIO_ctrl_pending(text))
      let count = BIO_read(text, &room, Int32(room.count))
      if count <= 0 { throw problem }
      return (Array(room.prefix(Int(count))), fingerprint(of: certificate))
    }

    /// A new key on the curve P-256.
    private static func newKey() -> OpaquePointer? {
      guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil) else { return nil }
      defer { EVP_PKEY_CTX_free(context) }
      var key: OpaquePointer?
      let isMade =
        EVP_PKEY_keygen_init(context) == 1
        && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1
        && EVP_PKEY_keygen(context, &key) == 1
      return isMade ? key : nil
    }

    /// Sets subject and issuer, which are the same, and the names for which the certificate is valid. RFC 5280 §4.2.1.6.
    private static func setNames(of certificate: OpaquePointer, _ names: [String]) -> Bool {
      let subject = X509_get_subject_name(certificate)
      guard X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, "fullbore", -1, -1, 0) == 1,
        X509_set_issuer_name(certificate, subject) == 1
      else { return false }
      let alternatives = names.map { isAddress($0) ? "IP:\($0)" : "DNS:\($0)" }.joined(separator: ",")
      for (kind, value) in [
        (NID_subject_alt_name, alternatives), (NID_basic_constraints, "critical,CA:FALSE"),
        (NID_ext_key_usage, "serverAuth"),
      ] {
        guard let field = X509V3_EXT_conf_nid(nil, nil, kind, value) else { return false }
        defer { X509_EXTENSION_free(field) }
        if X509_add_ext(certificate, field, -1) != 1 { return false }
      }
      return true
    }

    private static func isAddress(_ name: String) -> Bool {
      var room = in6_addr()
      return inet_pton(AF_INET, name, &room) == 1 || inet_pton(AF_INET6, name, &room) == 1
    }

    /// Writes a new file, which then takes the place of the old one.
    private static func write(_ text: [UInt8], to path: BytePath) throws(ServerError) {
      let new = BytePath(path.bytes + ".new".utf8)
      // A process that was killed while it wrote may have left this file.
      _ = new.withCString { unlink($0) }
      let number = new.withCString { openAt(AT_FDCWD, $0, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) }
      if number < 0 { throw failed("write the certificate", new.description) }
      let file = Descriptor(number)
      let isWritten = Platform.write(file.number, text, text.count) == text.count && flushContent(file.number) == 0
      let isMoved = isWritten && new.withCString { old in path.withCString { rename(old, $0) } } == 0
      if isMoved { return }
      let error = failed("write the certificate", path.description)
      _ = new.withCString { unlink($0) }
      throw error
    }

    private static var problem: ServerError {
      defer { ERR_clear_error() }
      let reason = ERR_reason_error_string(ERR_peek_last_error()).map { String(cString: $0) } ?? "OpenSSL failed"
      return ServerError("a certificate cannot be made: \(reason)")
    }
  }
#endif
