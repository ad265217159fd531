import BlobHTTP
import CGnuTLS
import CMicrohttpd
import Platform

/// One of libmicrohttpd's connections. All but `resume` and `isAtEnd` belong to its event thread.
struct Connection: @unchecked Sendable {
  // libmicrohttpd guards the handle: it is used by one event thread, and `MHD_resume_connection` may be called by any.
  private let handle: OpaquePointer
  let watch: WatchedConnection?

  init(_ handle: OpaquePointer) {
    self.handle = handle
    watch = fb_mhd_socket_context(handle).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  /// The fields of the request's head, whose request line is from `method` to the end of `version`.
  func head(_ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>) -> HeadCheck {
    var head = fields(.HEADER_KIND, HeadCheck(behind: version))
    head.finish(at: method + fb_mhd_head_size(handle))
    return head
  }

  /// The fields after the last chunk of a body, once they have come. RFC 9112 §7.1.2.
  var trailers: HeadCheck { fields(.FOOTER_KIND, HeadCheck()) }

  private func fields(_ kind: MHD_ValueKind, _ check: HeadCheck) -> HeadCheck {
    let box = HeadBox(check)
    MHD_get_connection_values(handle, kind, collect, Unmanaged.passUnretained(box).toOpaque())
    return box.head
  }

  /// Its bytes on the socket are TLS's: nothing but libmicrohttpd and GnuTLS may read or write them.
  var isEncrypted: Bool { fb_mhd_tls_session(handle) != nil }

  /// Stops the events of this connection; it never times out until `resume`.
  func suspend() {
    watch?.waits()
    MHD_suspend_connection(handle)
  }
  func resume() {
    watch?.goOn()
    MHD_resume_connection(handle)
  }

  /// A second descriptor of the socket, which keeps it open when libmicrohttpd closes its own.
  func duplicate() -> Descriptor? {
    let copy = fcntl(fb_mhd_descriptor(handle), F_DUPFD_CLOEXEC, 0)
    return copy < 0 ? nil : Descriptor(copy)
  }

  /// Takes the socket away, in the handler's call: libmicrohttpd is left with `dead`, a socket at its end, finds that the
  /// client is gone, and forgets the connection. nil: it has kept it.
  func detach(leaving dead: Descriptor) -> Descriptor? {
    guard let socket = duplicate() else { return nil }
    suspend()  // takes it out of epoll's set, which knows the open file and not its number
    defer { resume() }
    return dup2(dead.number, fb_mhd_descriptor(handle)) < 0 ? nil : socket
  }

  /// No more bytes will come, whether or not all were read. Any thread may call while the connection is suspended.
  var isAtEnd: Bool {
    var state = pollfd(fd: fb_mhd_descriptor(handle), events: noMoreToRead, revents: 0)
    return poll(&state, 1, 0) > 0
  }

  /// Sends an answer, or an interim one, of which libmicrohttpd knows nothing, as far as the client takes it at once. The
  /// connection must be suspended, or in the handler's call. Where a part was sent, nothing can follow it: the connection ends.
  func write(_ text: [UInt8]) {
    text.withUnsafeBytes { bytes in
      let socket = fb_mhd_descriptor(handle)
      let isSent: Bool
      if let session = fb_mhd_tls_session(handle) {
        isSent = fb_tls_send(session, bytes.baseAddress!, bytes.count) == bytes.count
      } else {
        let count = send(socket, bytes.baseAddress!, bytes.count, doNotWait)
        isSent = count <= 0 || count == bytes.count
      }
      if !isSent { shutdown(socket, shutBoth) }
    }
  }

  /// All that was ever sent has arrived: so little more fits whole, and who does not read is told nothing.
  var isQuiet: Bool {
    #if os(Linux)
      var waiting: Int32 = 0
      return ioctl(fb_mhd_descriptor(handle), UInt(TIOCOUTQ), &waiting) == 0 && waiting == 0
    #else
      return false
    #endif
  }

  /// Hands the answer over; sent when the event thread is back. In the first call for a request with a body the
  /// connection is closed after it.
  func queue(_ reply: Reply) -> MHD_Result {
    guard let response = make(reply.body) else { return .NO }
    defer { MHD_destroy_response(response) }
    for field in reply.headers.fields { MHD_add_response_header(response, field.name, field.value) }
    return MHD_queue_response(handle, UInt32(reply.status), response)
  }

  private func make(_ body: Reply.Body) -> OpaquePointer? {
    switch body {
    case .bytes(var bytes):
      return bytes.withUnsafeMutableBytes {
        MHD_create_response_from_buffer($0.count, $0.baseAddress, .RESPMEM_MUST_COPY)
      }
    case .file(let item, let range):
      // libmicrohttpd closes what it is given.
      let file = fcntl(item.file.number, F_DUPFD_CLOEXEC, 0)
      if file < 0 { return nil }
      let response = MHD_create_response_from_fd_at_offset64(
        UInt64(range.upperBound - range.lowerBound), file, UInt64(range.lowerBound))
      if response == nil { close(file) }
      return response
    }
  }
}

private final class HeadBox {
  var head: HeadCheck
  init(_ head: HeadCheck) { self.head = head }
}

private func collect(
  _ context: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?,
  _ value: UnsafePointer<CChar>?
) -> MHD_Result {
  guard let context, let name else { return .YES }
  Unmanaged<HeadBox>.fromOpaque(context).takeUnretainedValue().head.add(name, value)
  return .YES
}

#if os(Linux)
  let doNotWait = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
  private let noMoreToRead: Int16 = 0x2000  // POLLRDHUP, which the Glibc module does not show
#else
  let doNotWait = MSG_DONTWAIT
  private let noMoreToRead = Int16(POLLHUP)
#endif
