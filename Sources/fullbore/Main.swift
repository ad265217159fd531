import BlobCrypto
import Blobs
import Platform

/// The program: finds the command, lets it read its arguments, runs it, and exits with what it says.
@main
enum Fullbore {
  static let version = Release.version

  /// In the order in which `--help` lists them.
  static let commands: [any Command.Type] = [
    PushCommand.self, CheckCommand.self, WatchCommand.self, ResumeCommand.self, StatusCommand.self, HistoryCommand.self,
    AbortCommand.self, UnsealCommand.self,
    PlacesCommand.self, ServeCommand.self, ChecksumCommand.self, DoctorCommand.self, ManualCommand.self,
    CompletionsCommand.self,
  ]

  static func main() async {
    signal(SIGPIPE, SIG_IGN)
    // A write past the limit of a file's size then fails with EFBIG.
    signal(SIGXFSZ, SIG_IGN)
    await checkFileLimit()
    makeRoomForDescriptors()
    checkThreadLimit()
    let arguments = ProgramArguments.all()
    giveBackMemory(isServer: arguments.first == "serve")
    keepCryptoToTheEnd()
    let status = await run(arguments)
    Console.output.flush()
    exit(status.rawValue)
  }

  /// Ends the program where it may open next to no files: the libraries that it stands on end it without a word then. Some
  /// of the descriptors may be taken already, by files that the program was started with.
  private static func checkFileLimit() async {
    let most = raiseFileLimit()
    if most >= 256 { return }
    let free = (0..<Int32(clamping: most)).count { fcntl($0, F_GETFD) < 0 }
    if free >= fewestFiles { return await openTimers() }
    Console.error.write(
      "fullbore: only \(free) more files may be open at once (\(most) in all), and it takes \(fewestFiles) at least. Allow "
        + "more open files (ulimit -n 256)\n")
    exit(ExitStatus.failed.rawValue)
  }

  /// Besides standard input, output and errors.
  private static let fewestFiles = 24

  /// libdispatch opens its descriptors when the first timer of a clock begins, and ends the program by a trap if it cannot.
  /// This function opens them while descriptors are left, by the shortest sleep that needs a timer.
  private static func openTimers() async {
    try? await Task.sleep(for: .milliseconds(1), clock: .continuous)
    try? await Task.sleep(for: .milliseconds(1), clock: .suspending)
  }

  /// Ends the program where it may start next to no threads: it would wait for ever without a word.
  private static func checkThreadLimit() {
    if ThreadLimit.isSufficient() { return }
    Console.error.write(
      "fullbore: the system allows this user too few processes and threads: fullbore takes \(ThreadLimit.fewest) at "
        + "least. Allow more (ulimit -u 4096, or TasksMax= of the service)\n")
    exit(ExitStatus.failed.rawValue)
  }

  /// `status`, or a failure where what was written to standard output is the result, and did not get there. As with other
  /// programs nothing is said of a reader who left.
  private static func withResult(_ status: ExitStatus) -> ExitStatus {
    Console.output.flush()
    guard let failure = Console.output.failure else { return status }
    if failure != EPIPE {
      Console.error.write("fullbore: standard output: \(String(cString: strerror(failure)))\n")
    }
    return status == .ok ? .failed : status
  }

  static func run(_ arguments: [BytePath]) async -> ExitStatus {
    guard let first = arguments.first else {
      Console.error.write(help)
      return .usage
    }
    switch first {
    case "--version":
      Console.output.write(ProgramVersion.own.text)
      return withResult(.ok)
    case "--help", "--help-all", "-h", "help":
      if arguments.count > 1 { return await run(named: arguments[1], ["--help"]) }
      Console.output.write(help)
      return withResult(.ok)
    default:
      return await run(named: first, Array(arguments.dropFirst()))
    }
  }

  private static func run(named name: BytePath, _ rest: [BytePath]) async -> ExitStatus {
    guard let command = commands.first(where: { BytePath($0.declaration.name) == name }) else {
      let known = commands.map { $0.declaration.name }
      let hint = closest(to: name.description, among: known).map { " Did you mean '\($0)'?" } ?? ""
      Console.error.write("fullbore: there is no command '\(shown(name))'.\(hint) See 'fullbore --help'.\n")
      return .usage
    }
    let declaration = command.declaration
    do throws(UsageError) {
      let arguments = try Arguments(rest, declaration)
      if let length = arguments.wantsHelp {
        Console.output.write(declaration.help(length))
        return withResult(.ok)
      }
      let command = try command.init(arguments)
      if arguments.isOnlyRead { return .ok }
      let status = await command.run()
      return command.outputIsResult ? withResult(status) : status
    } catch {
      Console.error.write(
        "fullbore \(declaration.name): \(error.message)\nSee 'fullbore \(declaration.name) --help'.\n")
      return .usage
    }
  }

  static var help: String {
    let rows = commands.map { ("fullbore \($0.declaration.synopsis)", $0.declaration.summary) }
    return """
      Sends photos, videos and any other files to a server: no copy on disk, constant memory, resumable.

      \(CommandDeclaration.table(rows, 36))
      fullbore COMMAND --help has what most people need, and fullbore COMMAND --help-all every option.
      fullbore --version tells the version, the commit that was built, and the libraries in use.

      """
  }
}

/// The exit status of the program.
enum ExitStatus: Int32, Sendable {
  /// Everything is there.
  case ok = 0
  /// Something failed, and was named; the rest was done.
  case failed = 1
  /// Wrong usage; nothing was done.
  case usage = 2
  /// The destination cannot be reached, or refuses us.
  case unreachable = 3
  /// Ctrl-C; what was under way resumes.
  case interrupted = 130
}

/// One command: it declares its options, reads them, and runs.
protocol Command: Sendable {
  static var declaration: CommandDeclaration { get }
  /// Everything that can be wrong with the arguments is thrown here, before anything is done.
  init(_ arguments: Arguments) throws(UsageError)
  func run() async -> ExitStatus
  /// The command writes its result to standard output, and no report of its progress.
  var outputIsResult: Bool { get }
}
