import Blobs
import Platform

/// A TCP proxy on 127.0.0.1 that breaks connections by schedule.
public final class ChaosProxy: Sendable {
  /// What goes wrong on one connection. Bytes are counted on that connection, from its beginning.
  public enum Fault: Sendable, Hashable {
    case none
    /// Both sides are closed once so many bytes went from the client to the server.
    case cutUp(after: Int)
    /// Both sides are closed once so many bytes went from the server to the client.
    case cutDown(after: Int)
    /// The client gets an RST once so many of its bytes were passed on.
    case reset(after: Int)
    /// Nothing moves for a while once so many bytes went from the client to the server.
    case stall(after: Int, for: Duration)
    /// The nth answer, counted from 1, is swallowed and the connection closed: the server has done its work and the
    /// client does not know. Interim answers pass.
    case dropResponse(Int)
    /// The client's byte at this offset arrives with its lowest bit turned over.
    case flip(at: Int)
    /// Late delivery, as by a proxy that buffers. Once so many bytes went from the client to the server, up to `taking`
    /// more are taken from the client, and its side is closed. The server gets those slowly, spread over a time, while
    /// the client tries again elsewhere.
    case late(after: Int, taking: Int, over: Duration)
  }

  public struct Counters: Sendable, Hashable {
    public var connections = 0
    /// Connections on which the fault of the schedule came to pass.
    public var faults = 0
    public var bytesUp: Int64 = 0
    public var bytesDown: Int64 = 0
  }
  private struct State {
    var counters = Counters()
    var open: Set<Int32> = []
    var closed = false
  }

  public let port: Int
  private let listener: Int32
  private let state = Monitor(State())

  /// Passes connections on to `target`, a port on 127.0.0.1; the nth connection gets the nth fault of `schedule`.
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

  public var counters: Counters { state.update { $0.counters } }

  /// Cuts every connection there is; new ones are taken as before.
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
    /// The client's descriptor is closed: its number may be another connection's by now.
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
      // Answers first: a server that answers early and closes must be heard.
      if ready.second { return passDown(buffer) }
      return passUp(buffer)
    }

    private mutating func passUp(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      // Exactly as far as the fault allows.
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

    /// The server takes no more; it may have answered before.
    private mutating func drain(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
      while passDown(buffer) {}
      return false
    }

    /// Lets the fault happen. false: the connection is over.
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

    /// What the client sends without a longer pause, up to `most` bytes. Closes the client's side.
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

    /// The answer goes to no one. It is waited for, so that the server has done its work when its side is closed.
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
