import BlobTesting
import Blobs

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One client connection of the proxy.
final class ProxiedClient {
  private let client: Int32
  private let target: Int
  private let mode: ProxyPeer.Mode
  private let state: Monitor<ProxyPeer.Seen>
  private var server: Int32?
  /// A thread copies from the server to the client; both descriptors must stay open until it ends.
  private let isBringing = Monitor(false)

  init(_ client: Int32, _ target: Int, _ mode: ProxyPeer.Mode, _ state: Monitor<ProxyPeer.Seen>) {
    self.client = client
    self.target = target
    self.mode = mode
    self.state = state
  }

  func run() {
    defer {
      Loopback.shut(client)
      if let server { Loopback.shut(server) }
      isBringing.wait { $0 ? nil : () }
      Loopback.close(client)
      if let server { Loopback.close(server) }
    }
    if case .silent = mode {
      while take(1) != nil {}
      return
    }
    guard let first = take(1) else { return }
    switch first[0] {
    case 4: socks4()
    case 5: socks()
    default: http(first)
    }
  }

  // MARK: HTTP

  private func http(_ first: [UInt8]) {
    var first = first
    while let head = readHead(first) {
      first = []
      state.update { $0.heads.append(head.joined(separator: "\r\n")) }
      let words = head[0].split(separator: " ").map(String.init)
      guard words.count == 3, permits(head) else { return }
      if words[0] == "CONNECT" { return tunnel(words[1]) }
      guard forward(head, words) else { return }
    }
  }

  /// false if an error response was sent, after which the connection ends.
  private func permits(_ head: [String]) -> Bool {
    switch mode {
    case .willing, .silent: return true
    case .refuses(let status):
      say("HTTP/1.1 \(status) No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
      return false
    case .wants(let user, let password):
      if head.contains("Proxy-Authorization: Basic \(base64("\(user):\(password)"))") { return true }
      say(
        "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"test\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
      )
      return false
    }
  }

  private func tunnel(_ place: String) {
    guard let server = reach(place) else { return say("HTTP/1.1 502 Nobody there\r\nContent-Length: 0\r\n\r\n") }
    say("HTTP/1.1 200 Connected\r\n\r\n")
    relay(server)
  }

  /// Forwards a request with an absolute URL as one with a path, with its body. Another thread returns responses.
  private func forward(_ head: [String], _ words: [String]) -> Bool {
    let parts = words[1].split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2 else { return false }
    if server == nil {
      let place = parts[1].isEmpty && parts.count == 3 ? parts[2].prefix { $0 != "/" } : parts[1]
      guard let server = reach(String(place)) else {
        say("HTTP/1.1 502 Nobody there\r\nContent-Length: 0\r\n\r\n")
        return false
      }
      bringBack(from: server)
    }
    guard let server else { return false }
    let rest = parts.count == 3 ? parts[2].drop { $0 != "/" } : ""
    let own = head.dropFirst().filter { !$0.lowercased().hasPrefix("proxy-") }
    let lines = ["\(words[0]) \(rest.isEmpty ? "/" : rest) \(words[2])"] + own
    guard send(Array(lines.joined(separator: "\r\n").utf8), server) else { return false }
    return passBody(of: head, to: server)
  }

  private func passBody(of head: [String], to server: Int32) -> Bool {
    let fields = head.map { $0.lowercased() }
    if fields.contains("transfer-encoding: chunked") {
      while let line = readLine(), let size = Int(line, radix: 16) {
        guard send(Array("\(line)\r\n".utf8), server), pass(size, to: server), let end = readLine(),
          send(Array("\(end)\r\n".utf8), server)
        else { return false }
        if size == 0 { return true }
      }
      return false
    }
    let length = fields.first { $0.hasPrefix("content-length: ") }.flatMap { Int($0.dropFirst(16)) }
    return pass(length ?? 0, to: server)
  }

  // MARK: SOCKS5, RFC 1928 and 1929

  private func socks() {
    guard let count = take(1), let methods = takeAll(Int(count[0])) else { return }
    if case .wants(let user, let password) = mode {
      guard methods.contains(2) else { return say([5, 0xFF]) }
      say([5, 2])
      guard take(1) != nil, let name = takeText(), let word = takeText() else { return }
      let isRight = name == user && word == password
      state.update { $0.heads.append("\(name):\(word)") }
      say([1, isRight ? 0 : 1])
      if !isRight { return }
    } else {
      say([5, 0])
    }
    guard let request = takeAll(4) else { return }
    let host: String?
    switch request[3] {
    case 1: host = takeAll(4).map { $0.map(String.init).joined(separator: ".") }
    case 4: host = takeAll(16).map { _ in "[IPv6]" }
    default: host = takeText()
    }
    guard let host, let port = takeAll(2) else { return }
    if case .refuses = mode { return say([5, 2, 0, 1, 0, 0, 0, 0, 0, 0]) }
    guard let server = reach("\(host):\(Int(port[0]) << 8 | Int(port[1]))") else {
      return say([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])
    }
    say([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    relay(server)
  }

  // MARK: SOCKS4 and 4a, which have a user and no password

  private func socks4() {
    guard let request = takeAll(7), let user = takeTerminated() else { return }
    let port = Int(request[1]) << 8 | Int(request[2])
    let address = Array(request[3...])
    // An address 0.0.0.x means that a host name follows.
    let isNamed = address[..<3] == [0, 0, 0] && address[3] != 0
    guard let host = isNamed ? takeTerminated() : address.map(String.init).joined(separator: ".") else { return }
    var isPermitted = true
    switch mode {
    case .wants(let wanted, _):
      state.update { $0.heads.append(user) }
      isPermitted = user == wanted
    case .refuses: isPermitted = false
    case .willing, .silent: break
    }
    guard isPermitted, let server = reach("\(host):\(port)") else { return say([0, 91, 0, 0, 0, 0, 0, 0]) }
    say([0, 90, 0, 0, 0, 0, 0, 0])
    relay(server)
  }

  /// Reads text up to a NUL.
  private func takeTerminated() -> String? {
    var text: [UInt8] = []
    while let byte = take(1)?[0] {
      if byte == 0 { return String(decoding: text, as: UTF8.self) }
      text.append(byte)
    }
    return nil
  }

  private func takeText() -> String? {
    take(1).flatMap { takeAll(Int($0[0])) }.map { String(decoding: $0, as: UTF8.self) }
  }

  // MARK: Bytes

  private func reach(_ place: String) -> Int32? {
    server = Loopback.connect(port: target)
    if server != nil { state.update { $0.targets.append(place) } }
    return server
  }

  private func relay(_ server: Int32) {
    bringBack(from: server)
    Self.copy(from: client, to: server)
  }

  private func bringBack(from server: Int32) {
    isBringing.update { $0 = true }
    SystemThread.start("proxy-back") { [client, isBringing] in
      Self.copy(from: server, to: client)
      Loopback.shut(client)
      isBringing.update { $0 = false }
    }
  }

  private static func copy(from source: Int32, to target: Int32) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
    defer { buffer.deallocate() }
    while case let count = Loopback.read(source, into: buffer), count > 0 {
      guard Loopback.write(target, UnsafeRawBufferPointer(rebasing: buffer[..<count])) else { return }
    }
  }

  private func pass(_ count: Int, to server: Int32) -> Bool {
    var left = count
    while left > 0 {
      guard let bytes = take(min(left, 65_536)), send(bytes, server) else { return false }
      left -= bytes.count
    }
    return true
  }

  private func take(_ most: Int) -> [UInt8]? {
    let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      count = Loopback.read(client, into: UnsafeMutableRawBufferPointer(buffer))
    }
    return bytes.isEmpty ? nil : bytes
  }

  private func takeAll(_ count: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < count {
      guard let more = take(count - bytes.count) else { return nil }
      bytes += more
    }
    return bytes
  }

  /// Reads single bytes, so that nothing after the line is consumed.
  private func readLine(_ first: [UInt8] = []) -> String? {
    var line = first
    while true {
      guard let byte = take(1) else { return nil }
      if byte[0] == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
      if byte[0] != UInt8(ascii: "\r") { line.append(byte[0]) }
    }
  }

  /// The lines of the head, including the empty ones at its end, so that joining them restores the head.
  private func readHead(_ first: [UInt8]) -> [String]? {
    var lines: [String] = []
    while let line = readLine(lines.isEmpty ? first : []) {
      lines.append(line)
      if line.isEmpty { return lines + [""] }
    }
    return nil
  }

  private func say(_ text: String) { say(Array(text.utf8)) }
  private func say(_ bytes: [UInt8]) { _ = send(bytes, client) }
  private func send(_ bytes: [UInt8], _ socket: Int32) -> Bool { bytes.withUnsafeBytes { Loopback.write(socket, $0) } }
}

private func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }
