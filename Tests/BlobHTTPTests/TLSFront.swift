import BlobHTTP
import BlobTesting
import Blobs

#if os(Linux)
  import CCurl
  import CSSL
  import Platform

  /// A TLS server in front of a plain peer: every TLS connection has one connection to the peer, and ends with it.
  final class TLSFront: Sendable {
    /// Behavior of the TLS server that is independent of the peers.
    struct Mode: Sendable {
      var only12 = false
      /// The keys are changed after this number of bytes from the client, in TLS 1.2 by a new handshake.
      var renewsKeysEvery = Int.max
      /// Requests client certificates without setting a session id context: OpenSSL then breaks off resumed sessions.
      var breaksOffSessions = false
      /// The connection is cut after this number of bytes from the client.
      var cutsAfter: Int?
    }

    let port: Int
    private let listener: Int32

    init(_ certificate: Certificate, to target: Int, _ mode: Mode = Mode()) {
      let context = SSL_CTX_new(TLS_server_method())!
      precondition(
        SSL_CTX_use_certificate_chain_file(context, certificate.path) == 1
          && SSL_CTX_use_PrivateKey_file(context, certificate.key, SSL_FILETYPE_PEM) == 1)
      if mode.only12 { SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(TLS1_2_VERSION), nil) }
      if mode.breaksOffSessions { SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil) }
      (listener, port) = Loopback.listen()
      let address = UInt(bitPattern: context)
      SystemThread.start("tls-accept") { [listener] in
        let context = OpaquePointer(bitPattern: address)!
        while let outer = Loopback.accept(listener) {
          let ssl = UInt(bitPattern: SSL_new(context)!)
          guard let inner = Loopback.connect(port: target) else { break }
          SystemThread.start("tls-front") { Passage(OpaquePointer(bitPattern: ssl)!, outer, inner, mode).run() }
        }
        Loopback.close(listener)
        SSL_CTX_free(context)
      }
    }

    deinit { Loopback.shut(listener) }

    func url(_ path: String = "/a") -> HTTPURL { HTTPURL("https://127.0.0.1:\(port)\(path)")! }
  }

  /// A TLS connection and its connection to the peer, on one thread, because OpenSSL requires that.
  private final class Passage {
    private enum End { case open, closed, reset }
    private let ssl: OpaquePointer
    private let outer: Int32
    private let inner: Int32
    private let mode: TLSFront.Mode
    private var fromOuter = Pail()
    private var fromInner = Pail()
    private var outerEnd = End.open
    private var innerEnd = End.open
    private var taken = 0
    private var renewals = 0

    init(_ ssl: OpaquePointer, _ outer: Int32, _ inner: Int32, _ mode: TLSFront.Mode) {
      (self.ssl, self.outer, self.inner, self.mode) = (ssl, outer, inner, mode)
      precondition(fcntl(outer, F_SETFL, O_NONBLOCK) == 0)
      SSL_set_fd(ssl, outer)
      SSL_set_accept_state(ssl)
    }

    func run() {
      while outerEnd == .open && !(innerEnd != .open && fromInner.isEmpty) {
        if taken >= mode.cutsAfter ?? .max { innerEnd = .reset }
        if !move() { wait() }
      }
      if innerEnd == .closed { SSL_shutdown(ssl) }
      if innerEnd == .reset { Loopback.reset(outer) } else { Loopback.close(outer) }
      Loopback.close(inner)
      SSL_free(ssl)
    }

    /// false: no bytes could be moved.
    private func move() -> Bool {
      let marks = [taken, fromOuter.start, fromInner.start, fromInner.bytes.count]
      if fromOuter.isEmpty { receive() }
      if !fromOuter.isEmpty && innerEnd == .open { pass() }
      if fromInner.isEmpty && innerEnd == .open { listen() }
      if !fromInner.isEmpty { answer() }
      return marks != [taken, fromOuter.start, fromInner.start, fromInner.bytes.count]
    }

    private func receive() {
      var count = 0
      let most = min(65_536, (mode.cutsAfter ?? .max) - taken)
      ERR_clear_error()
      fromOuter.fill(most) { room in
        let result = SSL_read_ex(ssl, room.baseAddress, room.count, &count)
        if result != 1 && SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ { outerEnd = .closed }
        return result == 1 ? count : 0
      }
      taken += count
      if taken / mode.renewsKeysEvery > renewals {
        renewals += 1
        if mode.only12 { SSL_renegotiate(ssl) } else { SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) }
        SSL_do_handshake(ssl)
      }
    }

    private func pass() {
      let count = fromOuter.rest { send(inner, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) }
      // `listen` finds out how the connection has ended.
      fromOuter.start += count < 0 && errno != EAGAIN ? fromOuter.bytes.count - fromOuter.start : max(0, count)
    }

    private func listen() {
      fromInner.fill(65_536) { room in
        let count = recv(inner, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
        if count == 0 { innerEnd = .closed }
        if count < 0 && errno != EAGAIN { innerEnd = .reset }
        return max(0, count)
      }
    }

    private func answer() {
      var count = 0
      ERR_clear_error()
      let result = fromInner.rest { SSL_write_ex(ssl, $0.baseAddress, $0.count, &count) }
      if result == 1 {
        fromInner.start += count
      } else if ![SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ].contains(SSL_get_error(ssl, result)) {
        outerEnd = .closed
      }
    }

    private func wait() {
      var sockets = [
        pollfd(
          fd: outer, events: Int16(fromOuter.isEmpty ? POLLIN : 0) | Int16(fromInner.isEmpty ? 0 : POLLOUT), revents: 0),
        pollfd(
          fd: inner, events: Int16(fromInner.isEmpty ? POLLIN : 0) | Int16(fromOuter.isEmpty ? 0 : POLLOUT), revents: 0),
      ]
      while poll(&sockets, 2, -1) < 0 && errno == EINTR {}
    }
  }

  /// Bytes that wait to be forwarded.
  private struct Pail {
    var bytes: [UInt8] = []
    var start = 0
    var isEmpty: Bool { start == bytes.count }

    mutating func fill(_ most: Int, _ body: (UnsafeMutableRawBufferPointer) -> Int) {
      start = 0
      bytes = [UInt8](unsafeUninitializedCapacity: most) { room, count in
        count = body(UnsafeMutableRawBufferPointer(room))
      }
    }

    func rest<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
      bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    }
  }
#endif
