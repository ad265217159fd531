import Blobs
import CMicrohttpd
import Platform

/// Owns libmicrohttpd's daemon: a few event threads that share one listening socket.
final class Daemon: @unchecked Sendable {
  // The handle is set once in `init`; libmicrohttpd's own locks guard what it points to.
  private let handle: OpaquePointer
  private let socket: Int32
  private let service: Service

  /// libmicrohttpd clears all of a connection's memory between two requests, which makes it resident, and nothing gives
  /// it back. So it is small; large bodies do not come through it (`BodyPump`).
  private static let memory = 32 << 10
  /// How much a read would like to be. The buffer has half of the memory at first, and while it is smaller than this
  /// it grows before each read, until an eighth of the memory is left for the answer.
  private static let growth = memory
  private static let threads = 2
  /// In GnuTLS's words.
  /// Only ciphers that also authenticate (AEAD), only key exchanges with forward secrecy, no SHA-1.
  private static let protocols =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-MAC-ALL:+AEAD"
    + ":-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM"
    + ":-SIGN-RSA-SHA1:-SIGN-DSA-SHA1:-SIGN-ECDSA-SHA1"

  /// Answers what comes to `listener`, which is not needed any more afterwards.
  init(_ listener: Listener, _ service: Service, idle: Duration, connections: Int, tls: TLSIdentity?)
    throws(ServerError)
  {
    let socket = fcntl(listener.socket.number, F_DUPFD_CLOEXEC, 0)
    if socket < 0 { throw failed("listen on", listener.host) }
    var flags =
      MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue | MHD_USE_ITC.rawValue
    var options = [
      MHD_OptionItem(option: .LISTEN_SOCKET, value: Int(socket), ptr_value: nil),
      MHD_OptionItem(option: .THREAD_POOL_SIZE, value: Self.threads, ptr_value: nil),
      MHD_OptionItem(option: .CONNECTION_MEMORY_LIMIT, value: Self.memory, ptr_value: nil),
      MHD_OptionItem(option: .CONNECTION_MEMORY_INCREMENT, value: Self.growth, ptr_value: nil),
      MHD_OptionItem(option: .CONNECTION_LIMIT, value: connections, ptr_value: nil),
      MHD_OptionItem(option: .STRICT_FOR_CLIENT, value: 1, ptr_value: nil),
      MHD_OptionItem(
        option: .CONNECTION_TIMEOUT, value: Int(max(1, idle.components.seconds)), ptr_value: nil),
      MHD_OptionItem(option: .END, value: 0, ptr_value: nil),
    ]
    let context = Unmanaged.passUnretained(service).toOpaque()
    var handle: OpaquePointer?
    if let tls {
      flags |= MHD_USE_TLS.rawValue
      // libmicrohttpd reads the texts while it starts, and has GnuTLS's form of them afterwards.
      handle = tls.withText { certificate, key in
        options.insert(
          contentsOf: [
            MHD_OptionItem(option: .HTTPS_MEM_CERT, value: 0, ptr_value: .init(mutating: certificate)),
            MHD_OptionItem(option: .HTTPS_MEM_KEY, value: 0, ptr_value: .init(mutating: key)),
          ], at: 0)
        return Self.protocols.withCString { protocols in
          options.insert(
            MHD_OptionItem(option: .HTTPS_PRIORITIES, value: 0, ptr_value: .init(mutating: protocols)), at: 0)
          return fb_mhd_start(flags, began, advanced, ended, noticed, context, &options)
        }
      }
    } else {
      handle = fb_mhd_start(flags, began, advanced, ended, noticed, context, &options)
    }
    guard let handle else {
      throw ServerError("libmicrohttpd could not start: too few file descriptors, or no thread")
    }
    self.handle = handle
    self.socket = socket
    self.service = service
    service.gate.open(handle)
  }

  /// Refuses new connections: a socket that does not listen takes the place of the one that does.
  ///
  /// `MHD_quiesce_daemon` would abort the process now and then: it and an event thread both take the listening socket
  /// out of epoll's set, and who comes second finds it gone (up to 1.0 at least).
  func quiesce() {
    let deaf = makeSocket()
    if deaf < 0 || dup2(deaf, socket) < 0 { shutdown(socket, shutBoth) }
    if deaf >= 0 { close(deaf) }
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
  }

  /// Closes every connection and ends the threads. It must be quiesced, and no connection may be suspended.
  func stop() { MHD_stop_daemon(handle) }
}

#if os(Linux)
  let shutBoth = Int32(SHUT_RDWR)
  /// Named here, where libmicrohttpd's header is seen too: it declares the constant as well, and Swift sees but one.
  let streamSocket = Int32(SOCK_STREAM.rawValue)
#else
  let shutBoth = SHUT_RDWR
  let streamSocket = SOCK_STREAM
#endif
private func makeSocket() -> Int32 { socket(AF_INET, streamSocket, 0) }

// The callbacks are functions, not closures: Swift 6.3 crashes in its SendNonSendable pass ("map::at") on
// closures that become C function pointers beside inout C structs.

private func began(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let context, let target, let connection else { return nil }
  let service = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
  let request = Request(Connection(connection), target: target, service)
  return Unmanaged.passRetained(request).toOpaque()
}

private func advanced(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ url: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ data: UnsafePointer<CChar>?,
  _ size: UnsafeMutablePointer<Int>?, _ own: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let own = own?.pointee, let size, let method, let version else { return .NO }
  let request = Unmanaged<Request>.fromOpaque(own).takeUnretainedValue()
  if size.pointee == 0 { return request.advance(method, version) }
  let bytes = UnsafeRawBufferPointer(start: data, count: size.pointee)
  size.pointee = 0
  return request.take(bytes)
}

private func ended(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ own: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_RequestTerminationCode
) {
  guard let own, let request = own.pointee else { return }
  own.pointee = nil
  Unmanaged<Request>.fromOpaque(request).takeRetainedValue().ended()
}

private func noticed(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ own: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ code: MHD_ConnectionNotificationCode
) {
  guard let context, let connection, let own else { return }
  let watch = Unmanaged<Service>.fromOpaque(context).takeUnretainedValue().watch
  if let watched = own.pointee {
    own.pointee = nil
    watch.closed(Unmanaged<WatchedConnection>.fromOpaque(watched).takeRetainedValue())
  } else {
    own.pointee = Unmanaged.passRetained(watch.opened(fb_mhd_descriptor(connection), tellsEnd: true)).toOpaque()
  }
}
