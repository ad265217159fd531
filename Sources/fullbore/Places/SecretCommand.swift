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
  ].inGroup(.credentials)

  private static let outputs = Mutex<[BytePath: String]>([:])
  private static let most = 64 << 10
  private static let patience = Duration.seconds(120)

  /// The one line that the command prints. Blocks. `again`: the command is run even if its output is known.
  func output(again: Bool = false) throws(UsageError) -> String {
    if !again, let known = Self.outputs.withLock({ $0[text] }) { return known }
    let lines = String(decoding: try run(), as: UTF8.self).split(whereSeparator: \.isNewline).map { $0.trimmed }
      .filter { !$0.isEmpty }
    guard lines.count == 1, !lines[0].utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw UsageError("\(setting): wanted one line from the command, and it printed \(lines.count)")
    }
    Self.outputs.withLock { $0[text] = lines[0] }
    return lines[0]
  }

  private func run() throws(UsageError) -> [UInt8] {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw UsageError("\(setting): \(String(cString: strerror(errno)))") }
    // The command gets a copy of one end, and no other program that is started now gets either.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    var pid: pid_t = 0
    // Standard error stays that of this program: the command may ask for a passphrase there.
    let failure = spawnProgram(
      "/bin/sh", ["-c", text], variables: processEnvironment(),
      descriptors: [(ours: nil, its: 0), (ours: ends[1], its: 1), (ours: 2, its: 2)], &pid)
    close(ends[1])
    if failure != 0 { throw UsageError("\(setting): /bin/sh does not start: \(String(cString: strerror(failure)))") }
    let bytes = read(ends[0])
    if bytes == nil { kill(pid, SIGTERM) }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    guard let bytes else {
      throw UsageError(
        "\(setting): the command has printed over \(Self.most) bytes, or not ended within \(Self.patience)")
    }
    if status != 0 {
      throw UsageError(
        "\(setting): the command has failed (\(status & 0x7F == 0 ? "status \(status >> 8 & 0xFF)" : "signal \(status & 0x7F)")); "
          + "run it by itself to see why")
    }
    return bytes
  }

  /// Everything up to the end; nil: it is too much, or takes too long.
  private func read(_ descriptor: Int32) -> [UInt8]? {
    let deadline = ContinuousClock.now + Self.patience
    var (bytes, chunk): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 4096))
    while bytes.count <= Self.most, ContinuousClock.now < deadline {
      var wait = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      if poll(&wait, 1, 1000) <= 0 { continue }
      let count = chunk.withUnsafeMutableBytes { Platform.read(descriptor, $0.baseAddress!, $0.count) }
      if count == 0 { return bytes }
      if count > 0 { bytes += chunk.prefix(count) } else if errno != EINTR { return nil }
    }
    return nil
  }
}
