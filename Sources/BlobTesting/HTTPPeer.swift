import BlobHTTP
import Blobs

/// A small HTTP/1.1 server on 127.0.0.1 with one thread per connection, whose responses come from a closure. It serves
/// protocols that the embedded `Server` does not support. Bodies are stored in memory.
public final class HTTPPeer: Sendable {
  /// A request that has arrived completely.
  public struct Request: Sendable {
    /// The method, for example `PUT`.
    public var method: String
    /// The percent-encoded path as received, without the query.
    public var path: String
    /// The percent-encoded query; nil if there is none.
    public var query: String?
    /// The header fields, as the client sent them.
    public var headers: HTTPHeaders
    /// The whole body; empty if the request has none.
    public var body: [UInt8]
  }

  /// The response to one request.
  public struct Reply: Sendable {
    /// The status code.
    public var status: Int
    /// The header fields. The server adds `Content-Length`.
    public var headers: HTTPHeaders
    /// The body. For HEAD it is the body of the GET response; it determines Content-Length and is not sent.
    public var body: [UInt8]
    /// Called once the response was sent; what it returns is sent too, as a server does that responds to a request
    /// twice. nil: nothing more is sent.
    package var surplus: (@Sendable () -> String)?

    /// Creates a response.
    public init(_ status: Int, _ headers: HTTPHeaders = [:], _ body: [UInt8] = []) {
      self.status = status
      self.headers = headers
      self.body = body
    }
  }

  /// Returns the response; nil closes the connection without one. Called concurrently on many threads.
  public typealias Answer = @Sendable (Request) -> Reply?

  private struct State {
    var open: Set<Int32> = []
    var closed = false
    /// Body bytes of requests without a response so far, by connection.
    var arriving: [Int32: Int] = [:]
    /// Method and path of each request, such as `PUT /a`, in the order of arrival.
    var requests: [String] = []
  }

  /// The port on 127.0.0.1 that the server listens on.
  public let port: Int
  private let listener: Int32
  private let state = Monitor(State())

  /// `beginning` is called with the request and the body received so far, each time more of it arrives, for a server
  /// that stores the beginning of interrupted uploads.
  public init(beginning: @escaping @Sendable (Request) -> Void = { _ in }, _ answer: @escaping Answer) {
    (listener, port) = Loopback.listen()
    SystemThread.start("peer-accept") { [listener, state] in
      while let socket = Loopback.accept(listener) {
        let isOpen = state.update { state in
          if !state.closed { state.open.insert(socket) }
          return !state.closed
        }
        if !isOpen {
          Loopback.close(socket)
          continue
        }
        SystemThread.start("peer") {
          HTTPPeerConnection(socket) { request, count in
            state.update { $0.arriving[socket, default: 0] += count }
            beginning(request)
          }
          .serve { request in
            state.update { $0.requests.append("\(request.method) \(request.path)") }
            let reply = answer(request)
            state.update { $0.arriving[socket] = nil }
            return reply
          }
          state.update { state in
            state.arriving[socket] = nil
            if state.open.remove(socket) != nil { Loopback.close(socket) }
          }
        }
      }
      Loopback.close(listener)
    }
  }

  deinit { stop() }

  /// The URL of the server's root folder.
  public var url: HTTPURL { HTTPURL("http://127.0.0.1:\(port)/")! }
  /// Method and path of each request that has arrived, in order.
  public var requests: [String] { state.update(waking: .none) { $0.requests } }
  /// Body bytes received of requests that have no response yet.
  public var arriving: Int64 { state.update(waking: .none) { Int64($0.arriving.values.reduce(0, +)) } }

  /// Closes all current connections; new ones are accepted as before.
  public func cutAll() { state.update { state in for socket in state.open { Loopback.shut(socket) } } }

  /// Closes the listening socket and all connections. May be called repeatedly.
  public func stop() {
    state.update { state in
      // Only once, because the descriptor's number may belong to another socket afterwards.
      if !state.closed { Loopback.shut(listener) }
      state.closed = true
      for socket in state.open { Loopback.shut(socket) }
    }
  }
}

/// One connection: reads requests and writes replies.
private final class HTTPPeerConnection {
  private let socket: Int32
  private let arrived: (HTTPPeer.Request, Int) -> Void
  private var buffer = [UInt8](repeating: 0, count: 65_536)
  /// Bytes that were read but not yet consumed.
  private var held: ArraySlice<UInt8> = []

  init(_ socket: Int32, _ arrived: @escaping (HTTPPeer.Request, Int) -> Void) {
    self.socket = socket
    self.arrived = arrived
  }

  func serve(_ answer: (HTTPPeer.Request) -> HTTPPeer.Reply?) {
    while var request = readHead() {
      guard readBody(of: &request) else { return }
      guard let reply = answer(request) else { return }
      var head = "HTTP/1.1 \(reply.status) Answer\r\n"
      for (name, value) in reply.headers.fields { head += "\(name): \(value)\r\n" }
      if reply.status != 204 { head += "Content-Length: \(reply.body.count)\r\n" }
      let bytes = Array("\(head)\r\n".utf8) + (request.method == "HEAD" ? [] : reply.body)
      guard bytes.withUnsafeBytes({ Loopback.write(socket, $0) }) else { return }
      guard let surplus = reply.surplus.map({ Array($0().utf8) }) else { continue }
      guard surplus.withUnsafeBytes({ Loopback.write(socket, $0) }) else { return }
    }
  }

  private func fill() -> Bool {
    let count = buffer.withUnsafeMutableBytes { Loopback.read(socket, into: $0) }
    if count == 0 { return false }
    held += buffer[..<count]
    return true
  }

  private func readLine() -> String? {
    while true {
      if let end = held.firstIndex(of: UInt8(ascii: "\n")) {
        let line = held[..<end]
        held = held[(end + 1)...]
        return String(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
      }
      if !fill() { return nil }
    }
  }

  private func readHead() -> HTTPPeer.Request? {
    guard let first = readLine() else { return nil }
    let words = first.split(separator: " ")
    guard words.count == 3 else { return nil }
    var headers = HTTPHeaders()
    while let line = readLine() {
      if line.isEmpty {
        let path = String(words[1].prefix { $0 != "?" })
        let query = words[1].contains("?") ? String(words[1].dropFirst(path.count + 1)) : nil
        return HTTPPeer.Request(method: String(words[0]), path: path, query: query, headers: headers, body: [])
      }
      let name = line.prefix { $0 != ":" }
      headers.add(String(name), line.dropFirst(name.count + 1).trimmed)
    }
    return nil
  }

  private func readBody(of request: inout HTTPPeer.Request) -> Bool {
    if request.headers["Transfer-Encoding"] != nil {
      while let line = readLine(), let size = Int(line, radix: 16) {
        if size == 0 { return readLine() == "" }
        guard take(size, of: &request), readLine() == "" else { return false }
      }
      return false
    }
    let length = request.headers["Content-Length"].flatMap { Int($0) } ?? 0
    request.body.reserveCapacity(length)
    return take(length, of: &request)
  }

  private func take(_ count: Int, of request: inout HTTPPeer.Request) -> Bool {
    var left = count
    while left > 0 {
      if held.isEmpty, !fill() { return false }
      let piece = held.prefix(left)
      request.body += piece
      held = held.dropFirst(piece.count)
      left -= piece.count
      arrived(request, piece.count)
    }
    return true
  }
}
