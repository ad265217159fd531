import BlobTesting
import Blobs

/// A TCP proxy on 127.0.0.1 that decides by the method of each request whether it passes.
final class JudgingRelay: Sendable {
  enum Verdict: Sendable {
    case pass
    /// The connection is closed without a response.
    case cut
    /// The request gets no response, and the connection stays.
    case hold
  }
  private struct State: Sendable {
    var open: Set<Int32> = []
    var judge: (@Sendable (_ method: String) -> Verdict)?
  }
  let port: Int
  private let listener: Int32
  private let state = Monitor(State())

  /// `judge` is called on any thread, once for each request.
  init(to target: Int, _ judge: @escaping @Sendable (_ method: String) -> Verdict) {
    (listener, port) = Loopback.listen()
    state.update { $0.judge = judge }
    SystemThread.start("relay-accept") { [listener, state] in
      while let client = Loopback.accept(listener) {
        guard let server = Loopback.connect(port: target) else {
          Loopback.close(client)
          continue
        }
        state.update { $0.open.formUnion([client, server]) }
        SystemThread.start("relay-up") { Self.copy(client, to: server) { Self.verdict(on: $0, state) } }
        SystemThread.start("relay-down") { Self.copy(server, to: client) { _ in .pass } }
      }
      Loopback.close(listener)
    }
  }

  deinit {
    Loopback.shut(listener)
    for socket in state.update({ $0.open }) { Loopback.shut(socket) }
  }

  /// From now on, every request passes.
  func passAll() { state.update { $0.judge = nil } }

  /// A client sends a request only after the response to the one before, so that its head is the beginning of what is read.
  private static func verdict(on bytes: UnsafeRawBufferPointer, _ state: Monitor<State>) -> Verdict {
    let method = String(decoding: bytes.prefix { $0 != UInt8(ascii: " ") }.prefix(10), as: UTF8.self)
    guard ["GET", "HEAD", "POST", "PUT", "PATCH", "OPTIONS", "QUERY", "DELETE"].contains(method) else { return .pass }
    return state.update { $0.judge }?(method) ?? .pass
  }

  private static func copy(_ from: Int32, to: Int32, _ judge: (UnsafeRawBufferPointer) -> Verdict) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    reading: while case let count = Loopback.read(from, into: buffer), count > 0 {
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      switch judge(bytes) {
      case .pass: if !Loopback.write(to, bytes) { break reading }
      case .cut: break reading
      case .hold: break
      }
    }
    // The other side ends too. The descriptors stay open until the relay is gone, so that no number is used twice.
    Loopback.shut(from)
    Loopback.shut(to)
  }
}
