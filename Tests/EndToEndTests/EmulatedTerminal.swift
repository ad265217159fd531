import Foundation
import Testing

/// A terminal, which tmux emulates.
final class EmulatedTerminal {
  private let scratch: Scratch
  private let program: String
  private let socket: String
  private let rows: Int
  private let isShell: Bool

  /// A terminal with one run of `fullbore`.
  ///
  /// `isFull`: whether lines of numbers fill the screen first, as on a terminal that was used before.
  convenience init(
    _ arguments: [String], width: Int, isFull: Bool = true, environment: [String: String] = [:], in scratch: Scratch
  ) async throws {
    let quoted = ([Tool.fullbore] + arguments).map { "'\($0)'" }.joined(separator: " ")
    try await self.init(
      running: "\(isFull ? "seq 100 130; " : "")\(quoted); echo \"ended $?\"; sleep 600", width: width, rows: 24,
      isShell: false, environment: environment, in: scratch)
  }

  /// A terminal with a shell, which waits for `type`. Its prompt is `$ `.
  static func shell(
    in folder: String, width: Int, rows: Int, environment: [String: String], in scratch: Scratch
  ) async throws -> EmulatedTerminal {
    // The shell of root would have another prompt.
    let settings = scratch.newPath("settings")
    try "PS1='$ '\n".write(toFile: settings, atomically: false, encoding: .utf8)
    let terminal = try await EmulatedTerminal(
      running: "cd '\(folder)'; exec sh -i", width: width, rows: rows, isShell: true,
      environment: environment.merging(["ENV": settings]) { $1 }, in: scratch)
    _ = try await terminal.lines("a prompt") { $0.last == "$" }
    return terminal
  }

  private init(
    running line: String, width: Int, rows: Int, isShell: Bool, environment: [String: String], in scratch: Scratch
  ) async throws {
    self.scratch = scratch
    (self.rows, self.isShell) = (rows, isShell)
    program = try #require(Peer.tmux.path, Peer.tmux.reason)
    // The path of a socket has at most 107 bytes.
    socket = "/tmp/fullbore-\(UInt32.random(in: 0...UInt32.max))"
    try await tmux(
      ["-u", "-f", "/dev/null", "new-session", "-d", "-s", "a", "-x", "\(width)", "-y", "\(rows)", line],
      environment.merging(["LC_ALL": "C.UTF-8", "TERM": "xterm-256color"]) { given, _ in given })
  }

  @discardableResult
  private func tmux(_ arguments: [String], _ environment: [String: String] = [:]) async throws -> String {
    let command = try Command(program, ["-S", socket] + arguments, in: scratch, environment: environment)
    let end = try await command.wait()
    guard end == .exited(0) else { throw Command.Failure("tmux \(arguments): \(end) \(command.errors)") }
    return command.output
  }

  func resize(_ width: Int) async throws {
    try await tmux(["resize-window", "-t", "a", "-x", "\(width)", "-y", "\(rows)"])
  }

  /// Types a line and Return.
  func type(_ line: String) async throws {
    try await tmux(["send-keys", "-t", "a", "-l", line])
    try await tmux(["send-keys", "-t", "a", "Enter"])
  }

  func pressControlC() async throws { try await tmux(["send-keys", "-t", "a", "C-c"]) }

  /// The lines on the screen and above it, without those that filled it. A line that the terminal has wrapped is one.
  func lines(withColors: Bool = false, joined: Bool = false) async throws -> [String] {
    let options = (withColors ? ["-e"] : []) + (joined ? ["-J"] : [])
    return try await tmux(["capture-pane", "-p", "-S", "-", "-t", "a"] + options)
      .split(separator: "\n").map { $0.trimmingSuffix(" ") }.filter { !$0.isEmpty && Int($0) == nil }
  }

  /// Returns the lines once `isReady` holds for them.
  func lines(_ what: String, joined: Bool = false, _ isReady: ([String]) -> Bool) async throws -> [String] {
    var last: [String] = []
    for _ in 0..<600 {
      last = try await lines(joined: joined)
      if isReady(last) { return last }
      try await Task.sleep(for: .milliseconds(100))
    }
    throw Command.Failure("\(what): \(last.joined(separator: "\n"))")
  }

  /// Ends the terminal. A shell is told to end, since it outlives its terminal where a hangup is ignored.
  func end() async throws {
    if isShell { return try await type("exit") }
    try await tmux(["kill-server"])
  }
}

extension StringProtocol {
  fileprivate func trimmingSuffix(_ character: Character) -> String {
    String(prefix(upTo: lastIndex { $0 != character }.map(index(after:)) ?? startIndex))
  }
}
