import Platform

/// Blocks the thread, to make a source slow.
func pauseThread(milliseconds: UInt32) { usleep(milliseconds * 1000) }

/// The content of a file; empty if it does not exist.
func textFile(_ path: String) -> String {
  let file = open(path, O_RDONLY)
  defer { close(file) }
  var text: [UInt8] = []
  while case let more = readSome(file), !more.isEmpty { text += more }
  return String(decoding: text, as: UTF8.self)
}

/// The bytes that are available now; empty at the end.
func readSome(_ descriptor: Int32) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
    count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
  }
}

/// A temporary folder that is removed with its owner.
final class TemporaryFolder: Sendable {
  let path: String

  init() {
    var template = Array("/tmp/fullbore-test-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil)
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  }

  deinit { _ = Command(["rm", "-rf", path]).wait() }
}

/// A program that runs beside the test and ends with its owner.
final class Command: Sendable {
  /// The ends of the pipes to the program's input and output.
  let input: Int32
  let output: Int32
  private let process: pid_t

  init(_ arguments: [String]) {
    var (toProgram, fromProgram): ([Int32], [Int32]) = ([0, 0], [0, 0])
    precondition(pipe(&toProgram) == 0 && pipe(&fromProgram) == 0)
    for end in [toProgram[1], fromProgram[0]] { _ = setCloseOnExec(end) }
    #if os(Linux)
      var actions = posix_spawn_file_actions_t()
    #else
      var actions: posix_spawn_file_actions_t?
    #endif
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, toProgram[0], 0)
    posix_spawn_file_actions_adddup2(&actions, fromProgram[1], 1)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    var words = arguments.map { strdup($0) } + [nil]
    var process = pid_t()
    let status = posix_spawnp(&process, arguments[0], &actions, nil, &words, environ)
    precondition(status == 0, "\(arguments[0]) does not start: \(String(cString: strerror(status)))")
    posix_spawn_file_actions_destroy(&actions)
    for word in words { free(word) }
    for end in [toProgram[0], fromProgram[1]] { close(end) }
    self.process = process
    input = toProgram[1]
    output = fromProgram[0]
  }

  deinit {
    end()
    _ = wait()
    close(input)
    close(output)
  }

  /// Ends the program, if `wait` has not been called.
  func end() { kill(process, SIGKILL) }

  /// Waits for the end of the program; 0 is success.
  func wait() -> Int32 {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 && errno == EINTR {}
    return status
  }

  func write(_ text: String) {
    let bytes = Array(text.utf8)
    precondition(write(bytes))
  }

  /// false if the program accepts no more input.
  @discardableResult
  func write(_ bytes: [UInt8]) -> Bool {
    writeAll(input, bytes, bytes.count) == bytes.count
  }
}

private func setCloseOnExec(_ descriptor: Int32) -> Int32 { fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
private func writeAll(_ descriptor: Int32, _ bytes: [UInt8], _ count: Int) -> Int { write(descriptor, bytes, count) }
