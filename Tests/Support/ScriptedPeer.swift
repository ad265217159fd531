import BlobTesting
import Blobs
import Platform

/// A server on 127.0.0.1 that plays a script of steps on each connection.
public final class ScriptedPeer: Sendable {
  /// A step on a connection.
  public enum Step: Sendable {
    /// Reads up to the end of a request's head.
    case readHead
    /// Reads this many bytes.
    case read(Int)
    /// Reads a whole request: its head, and its body by `Content-Length` or chunks.
    case readRequest
    /// Reads and discards everything until the client closes.
    case discard
    case send(String)
    /// Waits until `ScriptedPeer.release` is called.
    case hold
    /// Waits for this many milliseconds.
    case pause(Int)
    case close
    case reset
  }

  /// Recorded events; per-connection lists are in the order in which connections were accepted.
  public struct Seen: Sendable {
    /// The heads of all requests as received.
    public var heads: [String] = []
    /// Bytes read by `readHead`, `read` and `readRequest` on each connection, heads included.
    public var received: [[UInt8]] = []
    /// Completed steps of each connection.
    public var steps: [Int] = []
    /// Number of closed connections.
    public var ended = 0
  }
  private struct State {
    var seen = Seen()
    var released = false
    var open: Set<Int32> = []
  }

  public let port: Int
  private let listener: Int32
  private let state = Monitor(State())

  /// The nth connection gets the nth script; the last script serves all further ones. `serially`: the server accepts a
  /// connection only after the script of the one before has ended.
  public init(_ scripts: [Step]..., serially: Bool = false) {
    (listener, port) = Loopback.listen()
    SystemThread.start("peer-accept") { [listener, state] in
      var count = 0
      while let socket = Loopback.accept(listener) {
        let (script, number) = (scripts[min(count, scripts.count - 1)], count)
        state.update { state in
          state.open.insert(socket)
          state.seen.received.append([])
          state.seen.steps.append(0)
        }
        let connection = PeerConnection(socket, number, state)
        if serially { connection.play(script) } else { SystemThread.start("peer") { connection.play(script) } }
        count += 1
      }
      Loopback.close(listener)
    }
  }

  deinit {
    Loopback.shut(listener)
    state.update { state in
      state.released = true
      for socket in state.open { Loopback.shut(socket) }
    }
  }

  public var seen: Seen { state.update { $0.seen } }

  /// Ends every current and later `hold`.
  public func release() { state.update { $0.released = true } }

  /// Returns once `condition` is true.
  public func wait(until condition: @escaping @Sendable (Seen) -> Bool) async {
    await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
      SystemThread.start("peer-wait") { [state] in
        state.wait { condition($0.seen) ? () : nil }
        done.resume()
      }
    }
  }

  private struct PeerConnection {
    let socket: Int32
    let number: Int
    let state: Monitor<State>

    init(_ socket: Int32, _ number: Int, _ state: Monitor<State>) {
      self.socket = socket
      self.number = number
      self.state = state
    }

    func play(_ script: [Step]) {
      var isReset = false
      for step in script {
        if case .reset = step { isReset = true }
        guard play(step) else { break }
        state.update { $0.seen.steps[number] += 1 }
      }
      // Closes under the lock, so that no other socket that reuses the descriptor's number is shut down.
      state.update { state in
        if state.open.remove(socket) != nil { isReset ? Loopback.reset(socket) : Loopback.close(socket) }
        state.seen.ended += 1
      }
    }

    /// Returns false if the connection is finished.
    private func play(_ step: Step) -> Bool {
      switch step {
      case .readHead: return readHead() != nil
      case .read(let count): return read(count)
      case .readRequest: return readRequest()
      case .discard: while take(65_536) != nil {}
      case .send(let text):
        return Array(text.utf8).withUnsafeBytes { Loopback.write(socket, $0) }
      case .pause(let milliseconds): usleep(UInt32(clamping: milliseconds * 1000))
      case .hold: state.wait { $0.released ? () : nil }
      case .close, .reset: return false
      }
      return true
    }

    private func take(_ most: Int) -> [UInt8]? {
      let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
        count = Loopback.read(socket, into: UnsafeMutableRawBufferPointer(buffer))
      }
      return bytes.isEmpty ? nil : bytes
    }

    private func keep(_ bytes: [UInt8]) { state.update { $0.seen.received[number] += bytes } }

    private func read(_ count: Int) -> Bool {
      var left = count
      while left > 0 {
        guard let bytes = take(min(left, 65_536)) else { return false }
        keep(bytes)
        left -= bytes.count
      }
      return true
    }

    /// Reads single bytes, so that nothing after the line is consumed.
    private func readLine() -> String? {
      var line: [UInt8] = []
      while true {
        guard let byte = take(1) else { return nil }
        keep(byte)
        if byte[0] == UInt8(ascii: "\n") { break }
        if byte[0] != UInt8(ascii: "\r") { line.append(byte[0]) }
      }
      return String(decoding: line, as: UTF8.self)
    }

    private func readHead() -> [String]? {
      var lines: [String] = []
      while let line = readLine() {
        lines.append(line)
        if !line.isEmpty { continue }
        state.update { $0.seen.heads.append(lines.joined(separator: "\r\n") + "\r\n") }
        return lines.map { $0.lowercased() }
      }
      return nil
    }

    private func readRequest() -> Bool {
      guard let head = readHead() else { return false }
      if head.contains("transfer-encoding: chunked") {
        while let line = readLine(), let size = Int(line, radix: 16) {
          if size == 0 {
            while let trailer = readLine() { if trailer.isEmpty { return true } }
            return false
          }
          guard read(size), readLine() != nil else { return false }
        }
        return false
      }
      let length = head.first { $0.hasPrefix("content-length: ") }
      return read(length.flatMap { Int($0.dropFirst(16)) } ?? 0)
    }
  }
}
