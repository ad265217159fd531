import Blobs
import Platform

/// The bytes from and to one client, in the clear or by TLS. No call waits.
final class ClientStream {
  let socket: Descriptor
  private let tls: TLSSession?
  /// TLS has to write before it can read on.
  private(set) var mustWriteToRead = false

  init(_ socket: Descriptor, _ tls: TLSSession?) {
    self.socket = socket
    self.tls = tls
  }

  var isEncrypted: Bool { tls != nil }
  /// TLS may have taken bytes from the socket that `receive` has not handed over.
  private(set) var hasMore = false

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
    /// 0: nothing is there.
    case bytes(Int)
    /// The client sends no more.
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

  /// How many bytes of the beginning were taken; nil: none ever will be. `hasMore`: others follow at once.
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

  /// Bytes of a file, as `send`. Throws nothing: where the file ends early, nil.
  func send(_ file: Descriptor, at offset: Int64, _ count: Int, through room: UnsafeMutableRawBufferPointer) -> Int? {
    if tls == nil {
      while true {
        let sent = Socket.sendFile(file.number, at: offset, count, on: socket.number)
        if sent > 0 { return sent }
        if sent == 0 { return nil }
        if errno == EINTR { continue }
        if errno == EAGAIN { return 0 }
        if errno != EINVAL && errno != ENOSYS { return nil }
        break  // a file system that cannot
      }
    }
    let read = pread(file.number, room.baseAddress!, min(count, room.count, 64 << 10), off_t(offset))
    if read <= 0 { return nil }
    return send(UnsafeRawBufferPointer(rebasing: room[..<read]))
  }

  /// Tells the client that nothing more follows.
  func endSending() {
    tls?.end()
    shutdown(socket.number, Socket.shutWriting)
  }

  /// Throws away what has come. false: the client sends no more.
  func discard(through room: UnsafeMutableRawBufferPointer) -> Bool {
    let count = recv(socket.number, room.baseAddress!, room.count, Socket.now)
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))
  }
}
