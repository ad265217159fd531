import Platform

/// Gives the terminal to another process group for a while, as a shell does: it may read there, and gets Ctrl-C.
struct ForegroundGroup {
  private let terminal: Int32

  /// nil: there is no terminal, or it is not with this process.
  init?(_ group: pid_t) {
    terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
    if terminal < 0 { return nil }
    guard tcgetpgrp(terminal) == getpgrp(), Self.give(terminal, to: group) else {
      close(terminal)
      return nil
    }
    // A command that has read from the terminal before it had it was stopped.
    kill(-group, SIGCONT)
  }

  /// Takes the terminal back.
  func end() {
    _ = Self.give(terminal, to: getpgrp())
    close(terminal)
  }

  /// SIGTTOU would stop a process that is not in the foreground here.
  private static func give(_ terminal: Int32, to group: pid_t) -> Bool {
    var (blocked, before) = (sigset_t(), sigset_t())
    sigemptyset(&blocked)
    sigaddset(&blocked, SIGTTOU)
    pthread_sigmask(SIG_BLOCK, &blocked, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    return tcsetpgrp(terminal, group) == 0
  }
}
