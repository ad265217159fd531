import Blobs
import Platform

/// A program that is run for each file that was received or sent, with the file's absolute path as its only argument, or its
/// URL in a bucket. No shell sees the path, so no name of a file can become a command.
struct UploadCommand: Sendable {
  let program: BytePath
  private let option: String

  /// Throws if there is no such program, so that this is not noticed with the first file only. `option`: the name of the
  /// option that gives it.
  init(_ path: BytePath, option: String) throws(UsageError) {
    program = path.absolute()
    self.option = option
    var status = stat()
    guard program.withCString({ stat($0, &status) }) == 0 else {
      throw UsageError("--\(option) \(shown(path)): \(String(cString: strerror(errno))); wanted the path of a program")
    }
    guard status.st_mode & S_IFMT == S_IFREG, program.withCString({ access($0, X_OK) }) == 0 else {
      throw UsageError("--\(option) \(shown(path)): this is not a program that can be run")
    }
  }

  /// Runs the program for each file that is added, for one after the other. A program that fails is reported to `notice`.
  /// `output`: gets each line that the program prints; nil: the program writes to standard error by itself. `path`: returns
  /// the file's path, or nil if the program must not be run for it any more. It may block.
  func queue<File: HandedFile>(
    atMost most: Int = 1000, output: (@Sendable (String) -> Void)?, notice: @escaping @Sendable (String) -> Void,
    path: @escaping @Sendable (File) -> BytePath?
  ) -> FileQueue<File> {
    // A pool of its own, because the program may take any time.
    let pool = BlockingPool("fullbore-hook", threads: 1)
    return FileQueue("--\(option)", atMost: most, notice: notice) { entry in
      let problem = await pool.run { path(entry.file).flatMap { run(on: $0, output) } }
      if let problem { notice("\(program) \(entry.file.title): the program \(problem)") }
    }
  }

  /// Runs the program and waits for its end. It gets this process's environment. What it prints goes to `output`, or to
  /// this process's standard error, because standard output belongs to the results. Returns what went wrong; nil:
  /// nothing. This call blocks.
  func run(on file: BytePath, _ output: (@Sendable (String) -> Void)? = nil) -> String? {
    var pid: pid_t = 0
    let lines = output.flatMap { ProgramLines($0) }
    let failure = spawnProgram(
      program, [file], variables: processEnvironment(),
      descriptors: [(ours: nil, its: 0), (ours: lines?.end ?? 2, its: 1), (ours: lines?.end ?? 2, its: 2)],
      hasOwnGroup: true, &pid)
    if failure != 0 { return "does not start: \(String(cString: strerror(failure)))" }
    let ended = lines?.read(until: pid)
    var status = ended ?? 0
    while ended == nil, waitpid(pid, &status, 0) < 0 {
      if errno != EINTR { return "its end is not known: \(String(cString: strerror(errno)))" }
    }
    let signal = status & 0x7F
    if signal != 0 { return "was ended by signal \(signal)" }
    let code = status >> 8 & 0xFF
    return code == 0 ? nil : "ended with status \(code)"
  }
}
