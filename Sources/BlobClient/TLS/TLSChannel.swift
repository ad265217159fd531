#if os(Linux)
  import BlobHTTP
  import CSSL
  import Platform

  /// A TLS connection, after its handshake. Records are gathered, so that one call takes many of them to the socket: OpenSSL
  /// by itself makes one call for every 16 KiB.
  ///
  /// It stands between OpenSSL and the socket as a BIO, which OpenSSL frees with the connection. All that OpenSSL writes is
  /// gathered, for `flush` to send.
  final class TLSChannel {
    let socket: Int32
    /// nil: it is closed.
    private var ssl: OpaquePointer?
    private let context: TLSContext
    /// Whose session the next connection goes on with.
    private let origin: String
    /// A body is under way: what OpenSSL says to the server goes with it.
    private var isSending = false
    /// Nothing more will come.
    private var hasEnded = false
    private var records = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// Lends room for few of them.
    private let stock: BufferPool
    private var gathered = 0..<0
    /// Bytes that are encrypted and have not been taken by the socket.
    var pending: Int { gathered.count }
    var isOpen: Bool { ssl != nil && !hasEnded }

    /// `ssl`: after the handshake, on `socket`; it stays the caller's where this fails.
    init?(_ ssl: OpaquePointer, on socket: Int32, _ stock: BufferPool, _ context: TLSContext, _ origin: String) {
      self.socket = socket
      self.stock = stock
      self.context = context
      self.origin = origin
      guard let method = Self.method, SSL_is_init_finished(ssl) == 1, let own = BIO_new(method) else { return nil }
      self.ssl = ssl
      BIO_set_data(own, Unmanaged.passRetained(self).toOpaque())
      BIO_set_init(own, 1)
      // One reference for each direction.
      BIO_up_ref(own)
      SSL_set0_rbio(ssl, own)
      SSL_set0_wbio(ssl, own)
    }

    deinit { freeRecords() }

    /// Ends it, without a word to the server, and closes its socket.
    func end() {
      guard let ssl else { return }
      context.free(ssl, origin)
      close(socket)
    }

    /// Keeps no room for records while there is nothing to send.
    func rest() {
      if gathered.isEmpty { freeRecords() }
    }

    private func freeRecords() {
      if records.count == stock.size { stock.give(records) } else { records.deallocate() }
      records = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    }

    /// Whether the server has neither sent anything nor closed it.
    var isQuiet: Bool {
      guard let ssl, !hasEnded, SSL_has_pending(ssl) == 0 else { return false }
      var byte: UInt8 = 0
      if recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) < 0 { return errno == EAGAIN }
      // Tickets for another time are nothing that it says. RFC 8446 §4.6.1.
      ERR_clear_error()
      let result = SSL_peek(ssl, &byte, 1)
      let isQuiet = result <= 0 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ
      ERR_clear_error()
      return isQuiet && hasReplied()
    }

    /// Encrypts `bytes`, for `flush` to send; nothing may be pending. How many: fewer than all where the server wants a
    /// new handshake first, or where `isOpen` is false now. What is left must be what comes next.
    func seal(_ bytes: UnsafeRawBufferPointer) -> Int {
      guard let ssl, isOpen else { return 0 }
      isSending = true
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

    /// Sends what is pending, as far as the socket takes it.
    func flush() -> SendOutcome {
      while !gathered.isEmpty {
        let count = send(socket, records.baseAddress! + gathered.lowerBound, gathered.count, Int32(MSG_NOSIGNAL))
        if count < 0 {
          if errno == EINTR { continue }
          return errno == EAGAIN ? .blocked : .broken
        }
        gathered = gathered.lowerBound + count..<gathered.upperBound
        // It took some: it is full.
        if !gathered.isEmpty { return .blocked }
      }
      gathered = 0..<0
      // What a large body needs is kept for what follows.
      if records.count == stock.size, !stock.mayBeKept { freeRecords() }
      return isOpen ? .moved : .broken
    }

    /// The body is over.
    func endSending() { if gathered.isEmpty { isSending = false } }

    /// Decrypts what has come. Without another call `.nothing` is not known: some may be decrypted already.
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

    /// Sends what OpenSSL says to what it has read, unless a body is under way, with which it goes. false: not all has left.
    private func hasReplied() -> Bool {
      if isSending || pending == 0 { return true }
      if case .moved = flush() { return true }
      return false
    }

    /// More than a record has around its content, and what OpenSSL may have to say in between.
    private static let mostAround = 256
    /// Beyond this something other than the body makes OpenSSL write.
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

    // MARK: What OpenSSL calls

    // Made once, and never changed.
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
      if count < 0 && (errno == EAGAIN || errno == EINTR) { fb_bio_retry_read(bio) }
      if count == 0 { hasEnded = true }
      return Int32(count)
    }

    fileprivate func control(_ command: Int32) -> Int {
      switch command {
      // What is gathered leaves when the caller says so.
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

  // File-level functions, for a closure turned into a C function pointer next to an inout C struct crashes the compiler.

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
#endif
