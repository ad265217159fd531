import Blobs
import Platform
import Synchronization

/// A command of a place, whose output is a token or a password: `pass show nas`, `secret-tool lookup fullbore nas`.
///
/// It runs once in a run of the program, and again when the server has refused what it printed.
struct SecretCommand: Sendable, Hashable {
  /// For `/bin/sh -c`.
  let text: BytePath
  /// The name of its setting, for messages. They have neither the command nor its output.
  let setting: String

  /// Only places have these, and `places add` writes them: the command line of a push is seen by everyone here.
  static let declared: [OptionDeclaration] = [
    .value("token-command", "COMMAND", "the bearer token is what this prints, like 'pass show nas'"),
    .value("user", "NAME", "who sends there; with --password-command"),
    .value("password-command", "COMMAND", "the user's password is what this prints"),
    .value("account", "NAME", "whose files are there, of several places with one URL"),
  ].inGroup(.credentials)

  private static let outputs = Mutex<[BytePath: String]>([:])
  private static let most = 64 << 10
  static let patience = Duration.seconds(120)

  /// The one line that the command prints. Blocks, for little more than `patience`. `again`: the command is run even if its
  /// output is known.
  func output(again: Bool = false, patience: Duration = Self.patience) throws(UsageError) -> String {
    if !again, let known = Self.outputs.withLock({ $0[text] }) { return known }
    guard let output = String(validating: try run(patience), as: UTF8.self) else {
      throw UsageError("\(setting): what the command prints is not UTF-8")
    }
    let lines = output.split(whereSeparator: \.isNewline).map { $0.trimmed }.filter { !$0.isEmpty }
    guard lines.count == 1 else {
      throw UsageError("\(setting): wanted one line from the command, and it printed \(lines.count)")
    }
    if lines[0].utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) {
      throw UsageError("\(setting): what the command prints has a control character in it")
    }
    Self.outputs.withLock { $0[text] = lines[0] }
    return lines[0]
  }

  private func run(_ patience: Duration) throws(UsageError) -> [UInt8] {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw UsageError("\(setting): \(String(cString: strerror(errno)))") }
    // The command gets a copy of one end, and no other program that is started now gets either.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    var pid: pid_t = 0
    // Standard error stays that of this program: the command may ask for a passphrase there. The programs that the
    // shell starts are ended with it, so they are one process group.
    let failure = spawnProgram(
      "/bin/sh", ["-c", text], variables: processEnvironment(),
      descriptors: [(ours: nil, its: 0), (ours: ends[1], its: 1), (ours: 2, its: 2)], hasOwnGroup: true, &pid)
    close(ends[1])
    if failure != 0 { throw UsageError("\(setting): /bin/sh does not start: \(String(cString: strerror(failure)))") }
    let terminal = ForegroundGroup(pid)
    defer { terminal?.end() }
    var output = Output(ends[0], pid)
    output.read(until: ContinuousClock.now + patience)
    guard let status = output.status, output.bytes.count <= Self.most else {
      output.endGroup()
      throw UsageError(
        "\(setting): the command has printed over \(Self.most) bytes, or not ended within \(patience): it was ended")
    }
    if status != 0 {
      // The terminal has sent Ctrl-C to the command alone.
      if terminal != nil, status & 0x7F == SIGINT { kill(getpid(), SIGINT) }
      throw UsageError(
        "\(setting): the command has failed (\(status & 0x7F == 0 ? "status \(status >> 8 & 0xFF)" : "signal \(status & 0x7F)")); "
          + "run it by itself to see why")
    }
    return output.bytes
  }

  /// The output of a command until now, and whether the command has ended.
  private struct Output {
    private let descriptor: Int32
    private let pid: pid_t
    private(set) var bytes: [UInt8] = []
    private var hasEnd = false
    /// nil: the shell is running.
    private(set) var status: Int32?

    init(_ descriptor: Int32, _ pid: pid_t) { (self.descriptor, self.pid) = (descriptor, pid) }

    /// Reads until the shell has ended, it has printed too much, or the time is over. A program that the shell leaves behind
    /// may hold the pipe open, and is not waited for.
    mutating func read(until deadline: ContinuousClock.Instant) {
      while status == nil, bytes.count <= SecretCommand.most, ContinuousClock.now < deadline {
        // After the end of the pipe, this only waits.
        var wait = pollfd(fd: hasEnd ? -1 : descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&wait, 1, 20)
        // In this order, as the shell may print between the two.
        status = reap()
        readAvailable()
      }
    }

    private mutating func readAvailable() {
      var chunk = [UInt8](repeating: 0, count: 4096)
      while !hasEnd, bytes.count <= SecretCommand.most {
        let count = chunk.withUnsafeMutableBytes { Platform.read(descriptor, $0.baseAddress!, $0.count) }
        if count == 0 { hasEnd = true }
        if count > 0 { bytes += chunk.prefix(count) } else if errno != EINTR { return }
      }
    }

    private func reap() -> Int32? {
      var status: Int32 = 0
      return waitpid(pid, &status, WNOHANG) == pid ? status : nil
    }

    /// Ends the shell and what it has started, and waits for the shell, but not for ever.
    mutating func endGroup() {
      // The number of a process that has been waited for may be that of another one.
      if status != nil { return }
      kill(-pid, SIGTERM)
      kill(-pid, SIGCONT)
      usleep(200_000)
      kill(-pid, SIGKILL)
      for _ in 0..<100 where status == nil {
        status = reap()
        if status == nil { usleep(20_000) }
      }
    }
  }
}
