import Platform

/// Stops a thread that waits between iterations. A pipe wakes it at once.
final class StopFlag: Sendable {
  private let ask: (read: Int32, write: Int32)
  private let answer: (read: Int32, write: Int32)

  init() {
    ask = makePipe()
    answer = makePipe()
  }

  deinit {
    for descriptor in [ask.read, ask.write, answer.read, answer.write] { close(descriptor) }
  }

  /// Waits on the thread that is to be stopped. Returns true if it must end now.
  func wait(milliseconds: Int32) -> Bool {
    var asked = pollfd(fd: ask.read, events: Int16(POLLIN), revents: 0)
    return poll(&asked, 1, milliseconds) > 0
  }

  /// Call this on the thread as its last action.
  func confirm() { signalByte(answer.write) }

  /// Asks the thread to end, and waits until it has called `confirm`. May be called more than once.
  func stop() {
    signalByte(ask.write)
    var answered = pollfd(fd: answer.read, events: Int16(POLLIN), revents: 0)
    while poll(&answered, 1, -1) < 0 && errno == EINTR {}
  }
}

private func signalByte(_ descriptor: Int32) {
  var byte: UInt8 = 1
  _ = write(descriptor, &byte, 1)
}

/// If the limit of open files is reached, exits with a message; what was sent is in the journal.
func makePipe() -> (read: Int32, write: Int32) {
  var ends: [Int32] = [0, 0]
  if pipe(&ends) != 0 {
    let reason = String(cString: strerror(errno))
    Console.error.write("fullbore: no pipe can be made: \(reason). Allow more open files (ulimit -n 256)\n")
    exit(ExitStatus.failed.rawValue)
  }
  for descriptor in ends { _ = setCloseOnExec(descriptor) }
  return (ends[0], ends[1])
}

private func setCloseOnExec(_ descriptor: Int32) -> Int32 { fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
