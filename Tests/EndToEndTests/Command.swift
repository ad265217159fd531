import Foundation
import Synchronization

/// A program under test: started without a shell, watched, killed by its own id, always reaped.
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

  /// Starts `program` with its output in files of `scratch`, and nothing to read.
  init(_ program: String, _ arguments: [String], in scratch: Scratch, environment: [String: String] = [:]) throws {
    name = ([URL(fileURLWithPath: program).lastPathComponent] + arguments).joined(separator: " ")
    outputFile = scratch.newPath("output")
    errorFile = scratch.newPath("errors")
    var variables = ProcessInfo.processInfo.environment
    variables["FULLBORE_JOURNAL"] = scratch.path("journal.sqlite")
    variables["TMPDIR"] = scratch.path
    // No proxy of this machine between the test and itself.
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

  /// The tool itself.
  static func fullbore(
    _ arguments: String..., in scratch: Scratch, environment: [String: String] = [:]
  ) throws -> Command {
    try Command(Tool.fullbore, arguments, in: scratch, environment: environment)
  }

  /// nil while it runs.
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

  /// Bytes, as far as anyone looked while it ran.
  var peakMemory: Int {
    _ = end
    return state.withLock { $0.peakMemory }
  }

  /// Open descriptors; 0 once it has ended.
  var descriptors: Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count) ?? 0 }

  /// What its descriptors are of; not those of no file, which the libraries make for themselves, some only after a while
  /// (Dispatch a timer).
  var openFiles: [String] {
    let folder = "/proc/\(pid)/fd"
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return numbers.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
      .filter { !$0.hasPrefix("anon_inode:") }.sorted()
  }

  var output: String { (try? String(contentsOfFile: outputFile, encoding: .utf8)) ?? "" }
  var errors: String { (try? String(contentsOfFile: errorFile, encoding: .utf8)) ?? "" }

  /// Does nothing once it has ended.
  func kill(_ signal: Int32) {
    state.withLock { if $0.end == nil { _ = Foundation.kill(pid, signal) } }
  }

  /// Waits for the end; a program that hangs is killed, and that is a failure.
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

/// Runs the tool to its end.
func fullbore(_ arguments: String..., in scratch: Scratch) async throws -> (end: Command.End, command: Command) {
  let command = try Command(Tool.fullbore, arguments, in: scratch)
  return (try await command.wait(), command)
}

/// Asks again and again, without keeping a thread, until there is an answer.
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

/// Waits until the journal knows every file that the running push is to send: `resume` finishes what is killed after that.
func untilEveryFileIsKnown(in scratch: Scratch) async throws {
  while try await fullbore("status", "--json", in: scratch).command.output.contains("\"reading\"") {}
}
