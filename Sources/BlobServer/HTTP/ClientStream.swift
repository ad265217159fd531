import Blobs
import Platform

/// Non-blocking input and output of one client connection, in the clear or over TLS.
final class ClientStream {
  let socket: Descriptor
  private let tls: TLSSession?
  /// TLS must write before it can continue to read.
  private(set) var mustWriteToRead = false

  init(_ socket: Descriptor, _ tls: TLSSession?) {
    self.socket = socket
    self.tls = tls
  }

  var isEncrypted: Bool { tls != nil }
  /// TLS may have read bytes from the socket that `receive` has not returned yet.
  private(set) var hasMore = false

  /// The number of bytes from which on the system reports the socket as readable.
  private var leastReadable: Int32 = 1

  /// From now on the socket counts as readable when `count` bytes have arrived, when the client has closed, or when the
  /// system has no room for more. At least that many bytes must follow, or the connection would wait for ever. Over TLS
  /// one byte is enough, because OpenSSL itself reads its records in parts. socket(7), SO_RCVLOWAT.
  func setLeastReadable(_ count: Int32) {
    let count = tls == nil ? count : 1
    if count != leastReadable, Socket.setLeastReadable(count, socket.number) { leastReadable = count }
  }

  enum Handshake { case done, reading, writing, failed }
  func handshake() -> Handshake {
    switch tls?.handshake() ?? .nothing {
    case .nothing: .done
    case .reading: .reading
    case .writing: .writing
    case .end, .failure: .failed
    }
  }

  enum Received {
    /// 0: no bytes are available now.
    case bytes(Int)
    /// The client has closed its sending side.
    case end
    case broken
  }

  func receive(into room: UnsafeMutableRawBufferPointer) -> Received {
    guard let tls else {
      while true {
        let count = recv(socket.number, room.baseAddress!, room.count, Socket.now)
        if count > 0 { return .bytes(count) }
        if count == 0 { return .end }
        if errno == EINTR { continue }
        return errno == EAGAIN ? .bytes(0) : .broken
      }
    }
    let (count, wait) = tls.receive(into: room)
    mustWriteToRead = wait == .writing
    hasMore = wait == .nothing
    if count > 0 { return .bytes(count) }
    switch wait {
    case .nothing, .reading, .writing: return .bytes(0)
    case .end: return .end
    case .failure: return .broken
    }
  }

  /// Returns how many of the first bytes were accepted; nil if the connection is broken. `hasMore`: more bytes follow
  /// at once.
  func send(_ bytes: UnsafeRawBufferPointer, hasMore: Bool = false) -> Int? {
    guard let tls else {
      while true {
        let flags = Socket.now | (hasMore ? Socket.moreFollows : 0)
        let count = Platform.send(socket.number, bytes.baseAddress!, bytes.count, flags)
        if count >= 0 { return count }
        if errno == EINTR { continue }
        return errno == EAGAIN ? 0 : nil
      }
    }
    let (count, wait) = tls.send(bytes)
    return wait == .failure || wait == .end ? nil : count
  }

  /// Sends bytes of a file, with the result of `send`; nil also if the file ends early.
  func send(_ file: Descriptor, at offset: Int64, _ count: Int, through room: UnsafeMutableRawBufferPointer) -> Int? {
    if tls == nil {
      while true {
        let sent = Socket.sendFile(file.number, at: offset, count, on: socket.number)
        if sent > 0 { return sent }
        if sent == 0 { return nil }
        if errno == EINTR { continue }
        if errno == EAGAIN { return 0 }
        if errno != EINVAL && errno != ENOSYS { return nil }
        break  // a file system without sendfile
      }
    }
    let read = pread(file.number, room.baseAddress!, min(count, room.count, 64 << 10), off_t(offset))
    if read <= 0 { return nil }
    return send(UnsafeRawBufferPointer(rebasing: room[..<read]))
  }

  /// Tells the client that no more bytes follow.
  func endSending() {
    tls?.end()
    shutdown(socket.number, Socket.shutWriting)
  }

  /// Discards received bytes. Returns false if the client has closed its sending side.
  func discard(through room: UnsafeMutableRawBufferPointer) -> Bool {
    let count = recv(socket.number, room.baseAddress!, room.count, Socket.now)
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))
  }
}
