import Foundation
import Synchronization

/// A program under test: it is started without a shell, observed, killed by its own id, and always reaped.
final class Command: Sendable {
  /// How a program ended.
  enum End: Sendable, Hashable {
    case exited(Int32)
    case killed(by: Int32)
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  let name: String
  let pid: pid_t
  private let outputFile: String
  private let errorFile: String
  private struct State {
    var end: End?
    var peakMemory = 0
  }
  private let state = Mutex(State())

  /// Starts `program` with its output in files of `scratch`, and with empty standard input.
  init(_ program: String, _ arguments: [String], in scratch: Scratch, environment: [String: String] = [:]) throws {
    name = ([URL(fileURLWithPath: program).lastPathComponent] + arguments).joined(separator: " ")
    outputFile = scratch.newPath("output")
    errorFile = scratch.newPath("errors")
    var variables = ProcessInfo.processInfo.environment
    variables["FULLBORE_JOURNAL"] = scratch.path("journal.sqlite")
    variables["TMPDIR"] = scratch.path
    // The test must not reach itself through a proxy of this machine.
    for key in variables.keys where key.lowercased().hasSuffix("_proxy") { variables[key] = nil }
    variables.merge(environment) { $1 }

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, outputFile, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errorFile, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    var argv: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
    var envp: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") }
    argv.append(nil)
    envp.append(nil)
    defer { (argv + envp).forEach { free($0) } }
    var pid: pid_t = 0
    let error = posix_spawnp(&pid, program, &actions, nil, argv, envp)
    if error != 0 { throw Failure("\(program) does not start: \(String(cString: strerror(error)))") }
    self.pid = pid
  }

  deinit {
    if end == nil {
      kill(SIGKILL)
      waitpid(pid, nil, 0)
    }
  }

  /// Starts `fullbore` itself.
  static func fullbore(
    _ arguments: String..., in scratch: Scratch, environment: [String: String] = [:]
  ) throws -> Command {
    try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
  }

  /// nil while the program runs.
  var end: End? {
    state.withLock { state in
      if state.end == nil {
        state.peakMemory = max(state.peakMemory, statusBytes("VmHWM"))
        var status: Int32 = 0
        if waitpid(pid, &status, WNOHANG) == pid {
          let signal = status & 0x7F
          state.end = signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(by: signal)
        }
      }
      return state.end
    }
  }

  /// In bytes, as last sampled while the program ran.
  var peakMemory: Int {
    _ = end
    return state.withLock { $0.peakMemory }
  }

  /// The number of open descriptors; 0 after the program has ended.
  var descriptors: Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count) ?? 0 }

  /// The targets of its descriptors. Descriptors without a file are left out: libraries create them, some only after a
  /// while (Dispatch a timer).
  var openFiles: [String] {
    let folder = "/proc/\(pid)/fd"
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return numbers.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
      .filter { !$0.hasPrefix("anon_inode:") }.sorted()
  }

  var output: String { (try? String(contentsOfFile: outputFile, encoding: .utf8)) ?? "" }
  var errors: String { (try? String(contentsOfFile: errorFile, encoding: .utf8)) ?? "" }

  /// Does nothing if the program has ended.
  func kill(_ signal: Int32) {
    state.withLock { if $0.end == nil { _ = Foundation.kill(pid, signal) } }
  }

  /// Waits for the end. A program that hangs is killed, which is a failure.
  @discardableResult
  func wait(_ limit: Duration = .seconds(120)) async throws -> End {
    do {
      return try await until("\(name) ends", limit) { end }
    } catch {
      kill(SIGKILL)
      throw Failure("\(error)\n\(output)\(errors)")
    }
  }

  /// A `kB` line of /proc/PID/status.
  private func statusBytes(_ key: String) -> Int {
    guard let text = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
      let line = text.split(separator: "\n").first(where: { $0.hasPrefix(key + ":") })
    else { return 0 }
    return (line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
  }
}

/// Runs `fullbore` until it ends.
func fullbore(_ arguments: String..., in scratch: Scratch) async throws -> (end: Command.End, command: Command) {
  let command = try Command(Tool.fullbore, arguments, in: scratch)
  return (try await command.wait(), command)
}

/// Polls, without blocking a thread, until `condition` returns a value.
@discardableResult
func until<Value>(
  _ what: String, _ limit: Duration = .seconds(30), isolation: isolated (any Actor)? = #isolation,
  _ ask: () throws -> Value?
) async throws -> Value {
  let deadline = ContinuousClock.now + limit
  while true {
    if let value = try ask() { return value }
    if ContinuousClock.now > deadline { throw Command.Failure("waited \(limit) until \(what)") }
    try await Task.sleep(for: .milliseconds(2))
  }
}

/// Waits until the journal knows every file that the running push will send. A kill after that can be finished by
/// `resume`.
func untilEveryFileIsKnown(in scratch: Scratch) async throws {
  while try await fullbore("status", "--json", in: scratch).command.output.contains("\"reading\"") {}
}
