import Foundation

#if os(Linux)
  private let stream = Int32(SOCK_STREAM.rawValue)
#else
  private let stream = SOCK_STREAM
#endif

/// Accepts POST requests on 127.0.0.1, one connection at a time, and responds with the number of bytes in the body.
final class Receiver: Sendable {
  let port: UInt16

  init() {
    let listener = socket(AF_INET, stream, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, size) == 0 && listen(listener, 8) == 0 && getsockname(listener, address, &size) == 0
      }
    }
    precondition(isListening, "no port on 127.0.0.1")
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread {
      while case let client = accept(listener, nil, nil), client >= 0 {
        Self.serve(client)
        close(client)
      }
    }
  }

  /// Handles all requests of one connection.
  private static func serve(_ client: Int32) {
    var buffer = [UInt8](repeating: 0, count: 256 << 10)
    var head: [UInt8] = []
    while case let count = recv(client, &buffer, 1, 0), count > 0 {
      head.append(buffer[0])
      guard head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { continue }
      let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
      let length = lines.first { $0.hasPrefix("Content-Length: ") }.flatMap { Int64($0.dropFirst(16)) } ?? 0
      var left = length
      while left > 0 {
        let count = recv(client, &buffer, Int(min(left, Int64(buffer.count))), 0)
        if count <= 0 { return }
        left -= Int64(count)
      }
      let answer = "HTTP/1.1 200 OK\r\nContent-Length: \("\(length)".utf8.count)\r\n\r\n\(length)"
      if send(client, answer, answer.utf8.count, 0) < 0 { return }
      head = []
    }
  }
}
