import BlobHTTP
import CSSL
import Platform

/// A TLS connection after its handshake. Encrypted records are collected in a buffer, so that one system call sends
/// many of them: OpenSSL alone makes one call for every 16 KiB.
///
/// The channel is installed in OpenSSL as a BIO between OpenSSL and the socket; OpenSSL frees the BIO with the
/// connection. Everything that OpenSSL writes is collected until `flush` sends it.
final class TLSChannel {
  let socket: Int32
  /// nil: the connection is closed.
  private var ssl: OpaquePointer?
  private let context: TLSContext
  /// The origin under which the TLS session is stored for the next connection.
  private let origin: String
  /// A body is being sent: records that OpenSSL writes in between leave together with it.
  private var isSending = false
  /// The connection failed or the peer has ended it: nothing more will be received.
  private var hasEnded = false
  private var records = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  /// Supplies buffers for small numbers of records.
  private let stock: BufferPool
  private var gathered = 0..<0
  /// Encrypted bytes that the socket has not accepted yet.
  var pending: Int { gathered.count }
  var isOpen: Bool { ssl != nil && !hasEnded }
  /// The number of bytes that OpenSSL itself has sent since the last byte of a request, as when the server asks for new keys.
  private(set) var replied = 0
  /// The connection has failed, and was not closed in an orderly way.
  private(set) var wasReset = false

  /// Takes over `ssl`, a connection on `socket` after its handshake. If this returns nil, the caller still owns it.
  init?(_ ssl: OpaquePointer, on socket: Int32, _ stock: BufferPool, _ context: TLSContext, _ origin: String) {
    self.socket = socket
    self.stock = stock
    self.context = context
    self.origin = origin
    guard let method = Self.method, SSL_is_init_finished(ssl) == 1, let own = BIO_new(method) else { return nil }
    self.ssl = ssl
    BIO_set_data(own, Unmanaged.passRetained(self).toOpaque())
    BIO_set_init(own, 1)
    // SSL_set0_rbio and SSL_set0_wbio each take over one reference.
    BIO_up_ref(own)
    SSL_set0_rbio(ssl, own)
    SSL_set0_wbio(ssl, own)
  }

  deinit { freeRecords() }

  /// Closes the connection and its socket without sending `close_notify`.
  func end() {
    guard let ssl else { return }
    context.free(ssl, origin)
    close(socket)
  }

  /// Frees the buffer for records if nothing is pending.
  func rest() {
    if gathered.isEmpty { freeRecords() }
  }

  private func freeRecords() {
    if records.count == stock.size { stock.give(records) } else { records.deallocate() }
    records = UnsafeMutableRawBufferPointer(start: nil, count: 0)
  }

  /// Whether the server has neither sent application data nor closed the connection.
  var isQuiet: Bool {
    guard let ssl, !hasEnded, SSL_has_pending(ssl) == 0 else { return false }
    var byte: UInt8 = 0
    if recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0 {
      if errno == EAGAIN { return true }
      // The system reports this only once.
      (wasReset, hasEnded) = (true, true)
      return false
    }
    // New session tickets are not application data. RFC 8446 §4.6.1.
    ERR_clear_error()
    let result = SSL_peek(ssl, &byte, 1)
    let isQuiet = result <= 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ
    ERR_clear_error()
    return isQuiet && hasReplied()
  }

  /// Copies application data that has arrived, and leaves it to be received. Returns the number of bytes.
  func peek(into room: UnsafeMutableRawBufferPointer) -> Int {
    guard let ssl, !hasEnded else { return 0 }
    ERR_clear_error()
    defer { ERR_clear_error() }
    return max(0, Int(SSL_peek(ssl, room.baseAddress, Int32(room.count))))
  }

  /// Encrypts `bytes` for `flush` to send; `pending` must be 0. Returns the number of encrypted bytes: fewer than all
  /// if the server requests a new handshake first, or if `isOpen` is now false. The next call must pass the rest of
  /// these bytes.
  func seal(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard let ssl, isOpen else { return 0 }
    isSending = true
    replied = 0
    reserve(bytes.count + (bytes.count >> 14 + 1) * Self.mostAround)
    ERR_clear_error()
    var done = 0
    while done < bytes.count {
      var count = 0
      let result = SSL_write_ex(ssl, bytes.baseAddress! + done, bytes.count - done, &count)
      if result == 1 {
        done += count
        continue
      }
      if SSL_get_error(ssl, result) != SSL_ERROR_WANT_READ { hasEnded = true }
      ERR_clear_error()
      break
    }
    return done
  }

  /// Sends pending records as far as the socket accepts them.
  func flush() -> SendOutcome {
    while !gathered.isEmpty {
      let count = send(socket, records.baseAddress! + gathered.lowerBound, gathered.count, Socket.now)
      if count < 0 {
        if errno == EINTR { continue }
        return errno == EAGAIN ? .blocked : .broken
      }
      gathered = gathered.lowerBound + count..<gathered.upperBound
      // The socket accepted only a part: its buffer is full.
      if !gathered.isEmpty { return .blocked }
    }
    gathered = 0..<0
    // A larger buffer, as large bodies need it, is reused for what follows.
    if records.count == stock.size, !stock.mayBeKept { freeRecords() }
    return isOpen ? .moved : .broken
  }

  /// Ends the sending of a body.
  func endSending() { if gathered.isEmpty { isSending = false } }

  /// Decrypts received bytes. The caller must call again until the result is `.nothing`: OpenSSL may hold decrypted
  /// bytes.
  func receive(into room: UnsafeMutableRawBufferPointer) -> Received {
    guard let ssl else { return .broken }
    ERR_clear_error()
    var count = 0
    let result = SSL_read_ex(ssl, room.baseAddress, room.count, &count)
    let reason = SSL_get_error(ssl, result)
    ERR_clear_error()
    if !hasReplied() { hasEnded = true }
    if result == 1 { return .bytes(count) }
    if reason == SSL_ERROR_WANT_READ { return .nothing }
    hasEnded = true
    return reason == SSL_ERROR_ZERO_RETURN ? .end : .broken
  }

  /// Sends what OpenSSL has written in response to received records. While a body is being sent, they leave with the
  /// body. false: not everything could be sent.
  private func hasReplied() -> Bool {
    if isSending || pending == 0 { return true }
    replied += pending
    if case .moved = flush() { return true }
    return false
  }

  /// More bytes than the framing of a record, and other records that OpenSSL may add in between.
  private static let mostAround = 256
  /// If more is written without a flush, something other than the body makes OpenSSL write.
  private static let mostRecords = 4 << 20

  private func reserve(_ size: Int) {
    if size <= records.count { return }
    let larger =
      size <= stock.size ? stock.take() : UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    if !gathered.isEmpty {
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: records[..<gathered.upperBound]))
    }
    freeRecords()
    records = larger
  }

  // MARK: Called by OpenSSL

  // Initialized once and never changed.
  nonisolated(unsafe) private static let method: OpaquePointer? = {
    guard let method = BIO_meth_new(BIO_get_new_index() | fb_bio_source(), "fullbore") else { return nil }
    BIO_meth_set_write(method, channelWrites)
    BIO_meth_set_read(method, channelReads)
    BIO_meth_set_ctrl(method, channelControls)
    BIO_meth_set_destroy(method, channelEnds)
    return method
  }()

  fileprivate func write(_ bytes: UnsafeRawBufferPointer, _ bio: OpaquePointer) -> Int32 {
    fb_bio_clear_retry(bio)
    let end = gathered.upperBound + bytes.count
    if end > Self.mostRecords { return -1 }
    if end > records.count { reserve(2 * end) }
    (records.baseAddress! + gathered.upperBound).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
    gathered = gathered.lowerBound..<end
    return Int32(bytes.count)
  }

  fileprivate func read(_ room: UnsafeMutableRawBufferPointer, _ bio: OpaquePointer) -> Int32 {
    fb_bio_clear_retry(bio)
    let count = recv(socket, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
    if count < 0 { if errno == EAGAIN || errno == EINTR { fb_bio_retry_read(bio) } else { wasReset = true } }
    if count == 0 { hasEnded = true }
    return Int32(count)
  }

  fileprivate func control(_ command: Int32) -> Int {
    switch command {
    // Records are sent only when the caller calls `TLSChannel.flush`.
    case BIO_CTRL_FLUSH: 1
    case BIO_CTRL_EOF: hasEnded ? 1 : 0
    default: 0
    }
  }

  fileprivate func forget() { ssl = nil }

  fileprivate static func of(_ bio: OpaquePointer?) -> TLSChannel {
    Unmanaged<TLSChannel>.fromOpaque(BIO_get_data(bio)).takeUnretainedValue()
  }
}

// These are file-level functions because the compiler crashes on a closure converted to a C function pointer next to
// an inout C struct.

private func channelWrites(_ bio: OpaquePointer?, _ bytes: UnsafePointer<CChar>?, _ count: Int32) -> Int32 {
  guard let bytes, count > 0 else { return 0 }
  return TLSChannel.of(bio).write(UnsafeRawBufferPointer(start: bytes, count: Int(count)), bio!)
}

private func channelReads(_ bio: OpaquePointer?, _ room: UnsafeMutablePointer<CChar>?, _ count: Int32) -> Int32 {
  guard let room, count > 0 else { return 0 }
  return TLSChannel.of(bio).read(UnsafeMutableRawBufferPointer(start: room, count: Int(count)), bio!)
}

private func channelControls(
  _ bio: OpaquePointer?, _ command: Int32, _ number: Int, _ pointer: UnsafeMutableRawPointer?
) -> Int {
  TLSChannel.of(bio).control(command)
}

private func channelEnds(_ bio: OpaquePointer?) -> Int32 {
  guard let bio, let data = BIO_get_data(bio) else { return 1 }
  let channel = Unmanaged<TLSChannel>.fromOpaque(data)
  channel.takeUnretainedValue().forget()
  BIO_set_data(bio, nil)
  channel.release()
  return 1
}
