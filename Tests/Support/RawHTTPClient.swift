import BlobHTTP
import Platform

/// A blocking HTTP/1.1 client on a plain socket, which can also violate the protocol.
package final class RawHTTPClient {
  private let descriptor: Int32
  private var held: [UInt8] = []
  /// The target of the last request.
  private var target = "/"

  package struct Closed: Error {}

  package struct Answer {
    package var status: Int
    package var headers: HTTPHeaders
    package var body: [UInt8]
    /// The base for relative references in the header.
    package var target = "/"
    package var text: String { String(decoding: body, as: UTF8.self) }
    /// `Location` and `Content-Location` are resolved to absolute paths; `headers` contains them as they were sent.
    package subscript(name: String) -> String? {
      guard let value = headers[name], name.hasSuffix("Location") else { return headers[name] }
      return HTTPURL("http://localhost\(target)")?.resolve(value)?.path ?? value
    }
  }

  package init(port: UInt16, ipv6: Bool = false) throws {
    descriptor = socket(ipv6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var timeout = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    // Otherwise the first bytes of a body would wait until the head before them is acknowledged.
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    let status = ipv6 ? Self.connect6(descriptor, port) : Self.connect4(descriptor, port)
    if status != 0 { throw Closed() }
  }

  private static func connect4(_ descriptor: Int32, _ port: UInt16) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafeBytes(of: &address) {
      connect(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
  }

  private static func connect6(_ descriptor: Int32, _ port: UInt16) -> Int32 {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    address.sin6_addr = in6addr_loopback
    return withUnsafeBytes(of: &address) {
      connect(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
  }

  deinit { close(descriptor) }

  /// From now on the system sends one small packet, and the next one when that is acknowledged.
  package func sendsLittleAtATime() {
    var (size, off): (Int32, Int32) = (4096, 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &off, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Sends a request's head, with `Host` unless `headers` contains it.
  package func head(_ method: String, _ path: String, _ headers: [(String, String)] = []) throws {
    target = path
    var text = "\(method) \(path) HTTP/1.1\r\n"
    if !headers.contains(where: { $0.0 == "Host" }) { text += "Host: localhost\r\n" }
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    try send(Array("\(text)\r\n".utf8))
  }

  /// Sends a complete request and reads its response.
  package func ask(
    _ method: String, _ path: String, _ headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws -> Answer {
    try head(method, path, headers + (body.map { [("Content-Length", "\($0.count)")] } ?? []))
    if let body { try send(body) }
    return try answer(hasBody: method != "HEAD")
  }

  package func send(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Platform.send(descriptor, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
      if count <= 0 { throw Closed() }
      rest = rest.dropFirst(count)
    }
  }

  /// Reads the available bytes, at most `count`, without waiting.
  package func readSome(_ count: Int) {
    var buffer = [UInt8](repeating: 0, count: count)
    _ = recv(descriptor, &buffer, count, Int32(MSG_DONTWAIT))
  }

  /// Shuts down the sending side; responses can still be read.
  package func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// The next response; a `100 Continue` before it is skipped.
  package func answer(hasBody: Bool = true) throws -> Answer {
    var answer: Answer
    repeat { answer = try readHead() } while answer.status == 100
    // A 304 response gives the length of the body that it omits. RFC 9112 §6.3.
    guard hasBody, answer.status != 304, let length = answer["Content-Length"].flatMap({ Int($0) }) else {
      return answer
    }
    while held.count < length { try receive() }
    answer.body = Array(held.prefix(length))
    held.removeFirst(length)
    return answer
  }

  package func readHead() throws -> Answer {
    let end = Array("\r\n\r\n".utf8)
    while true {
      if let index = held.indices.first(where: { held[$0...].starts(with: end) }) {
        let lines = String(decoding: held[..<index], as: UTF8.self).split(separator: "\r\n")
        held.removeFirst(index + 4)
        var headers = HTTPHeaders()
        for line in lines.dropFirst() {
          let parts = line.split(separator: ":", maxSplits: 1)
          headers.add(String(parts[0]), parts.count > 1 ? parts[1].trimmed : "")
        }
        return Answer(status: Int(lines[0].split(separator: " ")[1])!, headers: headers, body: [], target: target)
      }
      try receive()
    }
  }

  /// Reads until the server closes the connection or the timeout passes.
  package func readToEnd() -> [UInt8] {
    while (try? receive()) != nil {}
    defer { held = [] }
    return held
  }

  /// Whether the server has closed the connection, with nothing left to read.
  package func isClosedByServer() -> Bool {
    var byte: UInt8 = 0
    return held.isEmpty && recv(descriptor, &byte, 1, 0) <= 0
  }

  private func receive() throws {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    if count <= 0 { throw Closed() }
    held += buffer.prefix(count)
  }
}
