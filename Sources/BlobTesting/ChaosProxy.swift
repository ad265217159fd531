import Blobs
import Platform

/// A TCP proxy on 127.0.0.1 that injects faults into connections by schedule.
public final class ChaosProxy: Sendable {
  /// The fault of one connection. Byte counts start at 0 for each connection.
  public enum Fault: Sendable, Hashable {
    /// The connection works.
    case none
    /// Both sides are closed after this many bytes from the client to the server.
    case cutUp(after: Int)
    /// Both sides are closed after this many bytes from the server to the client.
    case cutDown(after: Int)
    /// The client receives an RST after this many of its bytes were forwarded.
    case reset(after: Int)
    /// Forwarding pauses once, after this many bytes from the client to the server.
    case stall(after: Int, for: Duration)
    /// The nth response, counted from 1, is dropped and the connection closed: the server has processed the request,
    /// and the client does not know. Interim responses are forwarded and not counted.
    case dropResponse(Int)
    /// The lowest bit of the client's byte at this offset is flipped.
    case flip(at: Int)
    /// Late delivery, as by a buffering proxy. After this many bytes from the client to the server, up to `taking` more
    /// bytes are read from the client, and its side is closed. The server receives them slowly, spread over a time,
    /// while the client retries on another connection.
    case late(after: Int, taking: Int, over: Duration)
  }

  /// What the proxy has counted since it started.
  public struct Counters: Sendable, Hashable {
    /// Connections that the proxy has accepted.
    public var connections = 0
    /// Connections on which the scheduled fault occurred.
    public var faults = 0
    /// Bytes from the clients to the server.
    public var bytesUp: Int64 = 0
    /// Bytes from the server to the clients.
    public var bytesDown: Int64 = 0
  }
  private struct State {
    var counters = Counters()
    var open: Set<Int32> = []
    var closed = false
  }

  /// The port on 127.0.0.1 that clients connect to.
  public let port: Int
  private let listener: Int32
  private let state = Monitor(State())

  /// Forwards connections to the port `target` on 127.0.0.1. The nth connection gets the nth fault of `schedule`.
  public init(to target: Int, _ schedule: Schedule = Schedule([])) {
    (listener, port) = Loopback.listen()
    SystemThread.start("chaos-accept") { [listener, state] in
      var count = 0
      while let client = Loopback.accept(listener) {
        let fault = schedule.fault(for: count)
        count += 1
        guard let server = Loopback.connect(port: target) else {
          Loopback.close(client)
          continue
        }
        let isOpen = state.update { state in
          state.counters.connections += 1
          if !state.closed { state.open.formUnion([client, server]) }
          return !state.closed
        }
        let passage = Passage(client, server, fault, state)
        if isOpen { SystemThread.start("chaos") { passage.run() } } else { passage.close() }
      }
      Loopback.close(listener)
    }
  }

  deinit {
    Loopback.shut(listener)
    state.update { state in
      state.closed = true
      for socket in state.open { Loopback.shut(socket) }
    }
  }

  /// What the proxy has counted until now.
  public var counters: Counters { state.update { $0.counters } }

  /// Closes all current connections; new ones are accepted as before.
  public func cutAll() {
    state.update { state in for socket in state.open { Loopback.shut(socket) } }
  }

  /// One connection and its fault.
  private struct Passage {
    let client: Int32
    let server: Int32
    let fault: Fault
    let state: Monitor<State>
    private var up = 0
    private var down = 0
    private var answers = 0
    private var isAsking = true
    private var hasStalled = false
    /// The client's descriptor is closed, and its number may belong to another connection.
    private var isClientClosed = false

    init(_ client: Int32, _ server: Int32, _ fault: Fault, _ state: Monitor<State>) {
      self.client = client
      self.server = server
      self.fault = fault
      self.state = state
    }

    func run() {
      var passage = self
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
      defer { buffer.deallocate() }
      while passage.step(buffer) {}
      passage.close()
    }

    func close() {
      state.update { state in
        for socket in isClientClosed ? [server] : [client, server] where state.open.remove(socket) != nil {
          Loopback.close(socket)
        }
      }
    }

    private mutating func step(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      let ready = Loopback.wait(client, server)
      // Responses are forwarded first: the client must receive an early response of a server that then closes.
      if ready.second { return passDown(buffer) }
      return passUp(buffer)
    }

    private mutating func passUp(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      // Read exactly up to the offset of the fault.
      let limit: Int? =
        switch fault {
        case .cutUp(let after), .reset(let after), .late(let after, _, _): after
        case .stall(let after, _) where !hasStalled: after
        default: nil
        }
      let room = min(buffer.count, limit.map { $0 - up } ?? buffer.count)
      if room <= 0 { return strike(buffer) }
      let count = Loopback.read(client, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
      if count == 0 { return false }
      if case .flip(let byte) = fault, up..<(up + count) ~= byte {
        buffer[byte - up] ^= 1
        state.update { $0.counters.faults += 1 }
      }
      up += count
      isAsking = true
      state.update { $0.counters.bytesUp += Int64(count) }
      guard Loopback.write(server, UnsafeRawBufferPointer(rebasing: buffer[..<count])) else { return drain(buffer) }
      return up == limit ? strike(buffer) : true
    }

    private mutating func passDown(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      var room = buffer.count
      if case .cutDown(let after) = fault { room = min(room, after - down) }
      if room <= 0 { return strike(buffer) }
      let count = Loopback.read(server, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
      if count == 0 { return false }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      if isAsking && !bytes.starts(with: "HTTP/1.1 1".utf8) {
        answers += 1
        isAsking = false
        if case .dropResponse(answers) = fault { return strike(buffer) }
      }
      down += count
      state.update { $0.counters.bytesDown += Int64(count) }
      guard Loopback.write(client, bytes) else { return false }
      if case .cutDown(down) = fault { return strike(buffer) }
      return true
    }

    /// The server accepts no more bytes, but may have sent a response before.
    private mutating func drain(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      while passDown(buffer) {}
      return false
    }

    /// Triggers the fault. Returns false if the connection is finished.
    private mutating func strike(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      state.update { $0.counters.faults += 1 }
      switch fault {
      case .stall(_, let time):
        hasStalled = true
        usleep(UInt32(clamping: Int64(time / .microseconds(1))))
        return true
      case .reset:
        state.update { state in if state.open.remove(client) != nil { Loopback.reset(client) } }
        isClientClosed = true
        return false
      case .late(_, let taking, let time):
        let taken = take(taking, buffer)
        deliverLate(taken, over: time)
        return false
      default: return false
      }
    }

    /// Reads what the client sends until it pauses, up to `most` bytes, then closes the client's side.
    private mutating func take(_ most: Int, _ buffer: UnsafeMutableRawBufferPointer) -> [UInt8] {
      var taken: [UInt8] = []
      while taken.count < most, Loopback.isReadable(client, within: 20) {
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(most - taken.count))
        let count = Loopback.read(client, into: room)
        if count == 0 { break }
        taken += room[..<count]
      }
      state.update { [client] state in
        state.counters.bytesUp += Int64(taken.count)
        if state.open.remove(client) != nil { Loopback.close(client) }
      }
      isClientClosed = true
      return taken
    }

    /// The response is discarded. This waits for it, so that the server has processed the request when its side is
    /// closed.
    private func deliverLate(_ bytes: [UInt8], over time: Duration) {
      let pieces = 8
      let size = max(1, (bytes.count + pieces - 1) / pieces)
      for start in stride(from: 0, to: bytes.count, by: size) {
        usleep(UInt32(clamping: Int64(time / pieces / .microseconds(1))))
        let piece = bytes[start..<min(start + size, bytes.count)]
        guard piece.withUnsafeBytes({ Loopback.write(server, $0) }) else { return }
      }
      _ = Loopback.isReadable(server, within: 200)
    }
  }
}
