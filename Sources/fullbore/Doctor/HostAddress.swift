import Blobs
import Platform

/// An IP address that a name stands for.
struct HostAddress: Sendable, Hashable {
  let text: String
  let isIPv6: Bool
  private let family: Int32
  /// The system's socket address.
  private let bytes: [UInt8]

  /// Why a name has no addresses.
  struct Failure: Error, Sendable { let message: String }

  /// All addresses of a host, each once, in the system's order. Blocks for as long as the resolver takes.
  static func all(of host: String, port: Int) -> Result<[HostAddress], Failure> {
    let name = host.first == "[" ? String(host.dropFirst().dropLast()) : host
    var hints = addrinfo()
    hints.ai_socktype = Socket.stream
    var first: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(name, String(port), &hints, &first)
    guard status == 0 else { return .failure(Failure(message: String(cString: gai_strerror(status)))) }
    defer { freeaddrinfo(first) }
    var found: [HostAddress] = []
    var next = first
    while let entry = next?.pointee, found.count < most {
      next = entry.ai_next
      guard let address = entry.ai_addr, let made = HostAddress(address, Int(entry.ai_addrlen)) else { continue }
      if !found.contains(made) { found.append(made) }
    }
    return .success(found)
  }

  /// A resolver can return any number.
  private static let most = 32

  private init?(_ address: UnsafePointer<sockaddr>, _ size: Int) {
    guard let text = Socket.text(of: address) else { return nil }
    self.text = text
    family = Int32(address.pointee.sa_family)
    isIPv6 = family == AF_INET6
    bytes = Array(UnsafeRawBufferPointer(start: address, count: size))
  }

  /// Connects, and closes the connection again. Returns the error number; 0: the address has answered. Blocks for `limit`
  /// at most.
  func connect(within limit: Duration) -> Int32 {
    let socket = Socket.make(family, Socket.stream, 0)
    if socket < 0 { return errno }
    defer { close(socket) }
    _ = fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK)
    let status = bytes.withUnsafeBytes { raw in
      Platform.connect(socket, raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
    }
    if status == 0 { return 0 }
    if errno != EINPROGRESS { return errno }
    let end = ContinuousClock.now + limit
    while true {
      let left = Quantity.seconds(end - .now)
      if left <= 0 { return ETIMEDOUT }
      var state = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      if poll(&state, 1, Int32(left * 1000) + 1) > 0 { break }
    }
    var (error, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size)
    return error
  }
}

/// Runs `body`, which may block for ever, on a thread of its own. nil: it has not returned within `limit`, and its thread
/// stays until it does; or the system allows no more threads.
func result<Value: Sendable>(within limit: Duration, of body: @escaping @Sendable () -> Value) async -> Value? {
  let (stream, feed) = AsyncStream.makeStream(of: Value?.self)
  if !SystemThread.startIfAllowed("fullbore-doctor", { feed.yield(body()) }) { return nil }
  let timer = Task {
    // A cancelled timer has nothing left to do.
    if (try? await Task.sleep(for: limit)) != nil { feed.yield(nil) }
  }
  defer { timer.cancel() }
  for await value in stream { return value }
  return nil
}
