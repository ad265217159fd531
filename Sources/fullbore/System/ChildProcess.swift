import Blobs
import Platform
import Synchronization

/// A program started by us. Whoever starts it waits for it.
final class ChildProcess: Sendable {
  enum Output: Sendable {
    /// Ours.
    case inherited
    /// To be read from `output`.
    case piped
  }

  /// How it ended, and what the kernel counted.
  struct End: Sendable, Hashable {
    /// The exit status; nil when a signal ended it.
    var status: Int32?
    var signal: Int32?
    /// Bytes it held in memory at most. Not less than ours when it was started: the kernel counts from the fork.
    var peakMemory: Int64
    /// Bytes it caused to be written to file systems that count it; a tmpfs does not.
    var written: Int64

    /// "exit status 1", "signal 25".
    var text: String { status.map { "exit status \($0)" } ?? "signal \(signal ?? 0)" }
  }

  let pid: pid_t
  /// The end of a pipe with what it writes to standard output; -1 where that is inherited.
  let output: Int32
  // Signals are sent under this lock and the process is reaped under it, so none goes to a stranger of the same pid.
  private let end = Mutex<End?>(nil)

  /// Starts the program at `path`. `environment` adds to ours or replaces what is there.
  init(
    _ path: BytePath, _ arguments: [BytePath], environment: [String: BytePath] = [:], output: Output = .inherited
  ) throws(DemoError) {
    let ends = output == .piped ? makePipe() : (read: -1, write: -1)
    var pid: pid_t = 0
    var descriptors: [(ours: Int32?, its: Int32)] = []
    if ends.write >= 0 { descriptors.append((ours: ends.write, its: 1)) }
    let status = spawnProgram(
      path, arguments, variables: Self.variables(with: environment), descriptors: descriptors, &pid)
    if ends.write >= 0 { close(ends.write) }
    if status != 0 {
      if ends.read >= 0 { close(ends.read) }
      throw DemoError("start \(path): \(String(cString: strerror(status)))")
    }
    self.pid = pid
    self.output = ends.read
  }

  deinit { if output >= 0 { close(output) } }

  /// Does nothing when it has ended.
  func send(_ signal: Int32) { end.withLock { if $0 == nil { kill(pid, signal) } } }

  /// Blocks until it has ended.
  func wait() -> End {
    while true {
      // Left unreaped until the lock is held.
      var info = siginfo_t()
      while waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
      if let end = end.withLock({ reap(&$0) }) { return end }
    }
  }

  private func reap(_ end: inout End?) -> End? {
    if let end { return end }
    var status: Int32 = 0
    var usage = rusage()
    if wait4(pid, &status, WNOHANG, &usage) != pid { return nil }
    let signal = status & 0x7F
    end = End(
      status: signal == 0 ? (status >> 8) & 0xFF : nil, signal: signal == 0 ? nil : signal,
      peakMemory: Int64(usage.ru_maxrss) << 10, written: Int64(usage.ru_oublock) << 9)
    return end
  }

  private static func variables(with added: [String: BytePath]) -> [BytePath] {
    var result: [BytePath] = []
    var entry = environ
    while let text = entry.pointee {
      let variable = BytePath(cString: text)
      let isReplaced = added.keys.contains { variable.bytes.starts(with: "\($0)=".utf8) }
      if !isReplaced { result.append(variable) }
      entry += 1
    }
    return result + added.map { BytePath(Array("\($0.key)=".utf8) + $0.value.bytes) }
  }
}

/// Reads lines from a descriptor, one at a time.
struct LineReader {
  let descriptor: Int32
  private var buffer: [UInt8] = []

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// The next line without its end; nil at the end of the input. Blocks.
  mutating func next() -> String? {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffer.removeSubrange(...end) }
        return String(decoding: buffer[..<end], as: UTF8.self)
      }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0 && errno == EINTR { continue }
      if count <= 0 { return nil }
      buffer += chunk.prefix(count)
    }
  }
}
