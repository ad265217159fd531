import Blobs
import Platform

#if os(Linux) || os(macOS)
  import CSSL

  /// Owns an OpenSSL context: the certificate, its key, and the TLS settings.
  final class TLSContext: Sendable {
    // OpenSSL counts references and uses locks of its own.
    nonisolated(unsafe) private let context: OpaquePointer

    /// Throws if a file cannot be read or is invalid, or if certificate and key do not match. Messages contain nothing
    /// of the files' content.
    init(_ files: TLSFiles) throws(ServerError) {
      ERR_clear_error()
      guard let context = SSL_CTX_new(TLS_server_method()), fb_ssl_be_server(context) == 1 else {
        throw ServerError("TLS cannot be begun: \(lastProblem())")
      }
      self.context = context
      try use(certificate: files.certificate)
      try use(key: files.key)
      if SSL_CTX_check_private_key(context) != 1 {
        ERR_clear_error()
        throw ServerError(
          "the certificate \(files.certificate) with the key \(files.key) cannot be used: they do not match")
      }
    }

    deinit { SSL_CTX_free(context) }

    /// Loads the server's own certificate and the chain of certificates that signed it.
    private func use(certificate path: BytePath) throws(ServerError) {
      let what = "the certificate \(path)"
      let isTaken = try withText(path, "the certificate") { bio in
        guard let first = PEM_read_bio_X509_AUX(bio, nil, hasNoPassword, nil) else { return false }
        defer { X509_free(first) }
        if SSL_CTX_use_certificate(context, first) != 1 { return false }
        while let next = PEM_read_bio_X509(bio, nil, hasNoPassword, nil) {
          defer { X509_free(next) }
          if fb_ssl_add_to_chain(context, next) != 1 { return false }
        }
        return true
      }
      if !isTaken { throw ServerError("\(what) cannot be used: \(lastProblem())") }
      ERR_clear_error()  // the error that no further certificate follows
    }

    private func use(key path: BytePath) throws(ServerError) {
      let isTaken = try withText(path, "the key") { bio in
        guard let key = PEM_read_bio_PrivateKey(bio, nil, hasNoPassword, nil) else { return false }
        defer { EVP_PKEY_free(key) }
        // If the key is of another type than the certificate, this reports a mismatch; the caller checks for that
        // later.
        return SSL_CTX_use_PrivateKey(context, key) == 1
          || ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH
          || ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_TYPE_MISMATCH
      }
      if !isTaken { throw ServerError("the key \(path) cannot be used: \(lastProblem())") }
      ERR_clear_error()
    }

    private func withText(
      _ path: BytePath, _ what: String, _ use: (OpaquePointer) -> Bool
    ) throws(ServerError) -> Bool {
      let bytes = try Self.read(path, what)
      return bytes.withUnsafeBytes { text in
        guard let bio = BIO_new_mem_buf(text.baseAddress, Int32(text.count)) else { return false }
        defer { BIO_free(bio) }
        return use(bio)
      }
    }

    /// Reads a file of PEM. Throws if it is no regular file: to open a pipe may take for ever.
    static func read(_ path: BytePath, _ what: String) throws(ServerError) -> [UInt8] {
      let most = 1 << 20
      let number = path.withCString { openAt(AT_FDCWD, $0, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) }
      if number < 0 { throw failed("open \(what)", path.description) }
      let file = Descriptor(number)
      var status = stat()
      if fstat(file.number, &status) != 0 { throw failed("look at \(what)", path.description) }
      if !status.isFile { throw ServerError("\(what) \(path) cannot be used: it is no regular file") }
      var bytes = [UInt8](repeating: 0, count: most)
      let count = bytes.withUnsafeMutableBytes { pread(file.number, $0.baseAddress!, $0.count, 0) }
      if count < 0 { throw failed("read \(what)", path.description) }
      if count == 0 || count == most { throw ServerError("\(what) \(path) cannot be used: it has \(count) bytes") }
      return Array(bytes[..<count])
    }

    /// Creates a session for a client that has just connected; nil: out of memory.
    func session(on socket: Int32) -> TLSSession? {
      guard let ssl = SSL_new(context) else { return nil }
      guard SSL_set_fd(ssl, socket) == 1 else {
        SSL_free(ssl)
        return nil
      }
      SSL_set_accept_state(ssl)
      return TLSSession(ssl)
    }
  }

  /// A key with a password cannot be used, because the server cannot ask for it.
  private func hasNoPassword(
    _ room: UnsafeMutablePointer<CChar>?, _ size: Int32, _ forWriting: Int32, _ context: UnsafeMutableRawPointer?
  ) -> Int32 { -1 }

  /// The reason why the last OpenSSL call failed.
  private func lastProblem() -> String {
    let code = ERR_peek_last_error()
    defer { ERR_clear_error() }
    return ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
  }

  /// Owns an OpenSSL connection, which reads from the socket and writes to it directly. The socket must stay open as
  /// long as this object lives.
  final class TLSSession {
    private let ssl: OpaquePointer
    /// After such an error, OpenSSL must not be called for this connection any more.
    private var isBroken = false

    fileprivate init(_ ssl: OpaquePointer) { self.ssl = ssl }

    deinit { SSL_free(ssl) }

    /// The reason why a call stopped.
    enum Wait { case nothing, reading, writing, end, failure }

    private func wait(after result: Int32) -> Wait {
      if result > 0 { return .nothing }
      let reason = SSL_get_error(ssl, result)
      ERR_clear_error()
      switch reason {
      case SSL_ERROR_WANT_READ: return .reading
      case SSL_ERROR_WANT_WRITE: return .writing
      case SSL_ERROR_ZERO_RETURN: return .end
      default:
        isBroken = true
        return .failure
      }
    }

    func handshake() -> Wait {
      ERR_clear_error()
      return wait(after: SSL_do_handshake(ssl))
    }

    /// Reads as many bytes into `room` as are available.
    func receive(into room: UnsafeMutableRawBufferPointer) -> (count: Int, Wait) {
      move(room.count) { SSL_read_ex(ssl, room.baseAddress! + $0, room.count - $0, &$1) }
    }

    /// Sends the first bytes of `bytes`, as many as the socket accepts. The caller must pass the rest again.
    func send(_ bytes: UnsafeRawBufferPointer) -> (count: Int, Wait) {
      move(bytes.count) { SSL_write_ex(ssl, bytes.baseAddress! + $0, bytes.count - $0, &$1) }
    }

    /// Calls `next`, which transfers bytes from an offset on and sets their count, until `size` bytes were transferred
    /// or a call would block.
    private func move(_ size: Int, _ next: (_ offset: Int, _ count: inout Int) -> Int32) -> (count: Int, Wait) {
      var sum = 0
      while sum < size {
        ERR_clear_error()
        var count = 0
        let result = next(sum, &count)
        if result != 1 { return (sum, wait(after: result)) }
        sum += count
      }
      return (sum, .nothing)
    }

    /// Sends the TLS close notification.
    func end() {
      if !isBroken, SSL_is_init_finished(ssl) == 1 { SSL_shutdown(ssl) }
      ERR_clear_error()
    }
  }
#else
  final class TLSContext: Sendable {
    init(_ files: TLSFiles) throws(ServerError) { throw ServerError("this server speaks TLS on Linux and macOS only") }
    func session(on socket: Int32) -> TLSSession? { nil }
  }

  final class TLSSession {
    enum Wait { case nothing, reading, writing, end, failure }
    func handshake() -> Wait { .failure }
    func receive(into room: UnsafeMutableRawBufferPointer) -> (count: Int, Wait) { (0, .failure) }
    func send(_ bytes: UnsafeRawBufferPointer) -> (count: Int, Wait) { (0, .failure) }
    func end() {}
  }
#endif
