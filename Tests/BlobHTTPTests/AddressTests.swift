import BlobClient
import BlobHTTP
import Blobs
import Platform
import Testing

/// Servers whose name has several addresses.
@Suite struct AddressTests {
  /// `localhost` has the addresses 127.0.0.1 and ::1. At one of them nothing answers, as with a network whose IPv6 does not
  /// work. If that is tried first, libcurl has two sockets open when it has connected to the other one 200 ms later.
  @Test(.timeLimit(.minutes(1)), arguments: [AF_INET, AF_INET6])
  func anAddressThatDoesNotAnswerIsPassedOver(_ silentFamily: Int32) async throws {
    guard let listeners = Listeners(silent: silentFamily) else {
      print("not tested: this machine has no ::1, or a listener whose queue is full answers")
      return
    }
    let began = ContinuousClock.now
    let url = HTTPURL("http://localhost:\(listeners.port)/")!
    #expect(try await SocketTransport().get(url).status == 204)
    #expect(ContinuousClock.now - began < .seconds(10))
    listeners.close()
  }
}

/// Two listeners at one port: one answers a request with 204, and the queue of the other one is full, so that the system
/// does not answer further connections.
private final class Listeners {
  let port: UInt16
  private var sockets: [Int32] = []

  init?(silent silentFamily: Int32) {
    let server = Self.socket(silentFamily == AF_INET ? AF_INET6 : AF_INET)
    let silent = Self.socket(silentFamily)
    sockets = [server, silent]
    guard server >= 0, silent >= 0, Self.call(bind, server, 0), listen(server, 8) == 0 else { return nil }
    port = Self.port(of: server)
    guard Self.call(bind, silent, port), listen(silent, 0) == 0 else { return nil }
    var isSilent = false
    while !isSilent, sockets.count < 10 {
      let connection = Self.socket(silentFamily)
      sockets.append(connection)
      _ = fcntl(connection, F_SETFL, O_NONBLOCK)
      _ = Self.call(connect, connection, port)
      var ready = pollfd(fd: connection, events: Int16(POLLOUT), revents: 0)
      isSilent = poll(&ready, 1, 300) == 0
    }
    if !isSilent { return nil }
    SystemThread.start("listener") {
      while case let connection = accept(server, nil, nil), connection >= 0 {
        _ = readSome(connection)
        let text = Array("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n".utf8)
        _ = send(connection, text, text.count, Int32(MSG_NOSIGNAL))
        _ = Platform.close(connection)
      }
    }
  }

  deinit { close() }

  func close() {
    // The thread that accepts is woken by this, but not by `close`.
    if let server = sockets.first { _ = shutdown(server, Int32(SHUT_RDWR)) }
    for socket in sockets { _ = Platform.close(socket) }
    sockets = []
  }

  private static func socket(_ family: Int32) -> Int32 { Platform.socket(family, Int32(SOCK_STREAM.rawValue), 0) }

  private static func port(of socket: Int32) -> UInt16 {
    var address = sockaddr_in6()
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    withUnsafeMutableBytes(of: &address) {
      _ = getsockname(socket, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
    }
    // It is at the same place in both kinds of address.
    return UInt16(bigEndian: address.sin6_port)
  }

  /// Calls `bind` or `connect` with the loopback address of the socket's family. false: it has failed.
  private static func call(
    _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ socket: Int32, _ port: UInt16
  ) -> Bool {
    var family: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &length)
    func call(_ address: UnsafeRawBufferPointer) -> Bool {
      function(socket, address.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(address.count)) == 0
    }
    if family == AF_INET {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      return withUnsafeBytes(of: &address, call)
    }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    address.sin6_addr = in6addr_loopback
    return withUnsafeBytes(of: &address, call)
  }
}
