import Platform

/// Starts a program with the usual signal state, whatever this process has set: no signal is blocked, and SIGPIPE ends
/// it. Returns 0 and sets `pid`, or returns the system's error number.
///
/// - `arguments`: without the program's own name, which is `path`.
/// - `variables`: the complete environment, as `NAME=value`.
/// - `hasOwnGroup`: signals that a terminal sends to this process's group do not reach the program.
/// - `descriptors`: maps our descriptors to the numbers in the new program; with nil for `ours`, it gets `/dev/null`.
///   The program also inherits all descriptors that are not marked "close on exec".
package func spawnProgram(
  _ path: BytePath, _ arguments: [BytePath], variables: [BytePath], descriptors: [(ours: Int32?, its: Int32)],
  hasOwnGroup: Bool = false, _ pid: inout pid_t
) -> Int32 {
  #if os(Linux)
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
  #else
    var actions: posix_spawn_file_actions_t?
    var attributes: posix_spawnattr_t?
  #endif
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  for (ours, its) in descriptors {
    if let ours {
      posix_spawn_file_actions_adddup2(&actions, ours, its)
    } else {
      posix_spawn_file_actions_addopen(&actions, its, "/dev/null", O_RDWR, 0)
    }
  }
  posix_spawnattr_init(&attributes)
  defer { posix_spawnattr_destroy(&attributes) }
  var signals = sigset_t()
  sigemptyset(&signals)
  posix_spawnattr_setsigmask(&attributes, &signals)
  sigaddset(&signals, SIGPIPE)
  posix_spawnattr_setsigdefault(&attributes, &signals)
  if hasOwnGroup { posix_spawnattr_setpgroup(&attributes, 0) }
  let group = hasOwnGroup ? Int16(POSIX_SPAWN_SETPGROUP) : 0
  posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) | group)
  let words = ([path] + arguments).map { $0.withCString { strdup($0) } } + [nil]
  let environment = variables.map { $0.withCString { strdup($0) } } + [nil]
  defer { for text in words + environment { free(text) } }
  return path.withCString { posix_spawn(&pid, $0, &actions, &attributes, words, environment) }
}

/// The environment of this process, as `NAME=value`.
package func processEnvironment() -> [BytePath] {
  #if os(Linux)
    let start = fb_environment()
  #else
    let start = _NSGetEnviron().pointee
  #endif
  guard var next = start else { return [] }
  var variables: [BytePath] = []
  while let variable = next.pointee {
    variables.append(BytePath(cString: variable))
    next += 1
  }
  return variables
}
