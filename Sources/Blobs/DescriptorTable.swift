import Platform

/// Raises the soft limit of open files to the hard limit, but at most to 65,536, and returns the resulting limit.
/// Systems set a low soft limit (256 on macOS, 1,024 on Linux) for programs that use `select`, which this project does
/// not.
@discardableResult
package func raiseFileLimit() -> Int {
  var limit = rlimit()
  #if os(Linux)
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
  #else
    let resource = RLIMIT_NOFILE
  #endif
  if getrlimit(resource, &limit) != 0 { return 1024 }
  let wanted = min(limit.rlim_max, 65_536)
  if limit.rlim_cur < wanted {
    var raised = limit
    raised.rlim_cur = wanted
    if setrlimit(resource, &raised) == 0 { limit = raised }
  }
  return Int(min(limit.rlim_cur, 65_536))
}

#if os(Linux)
  /// Grows the descriptor table for about a thousand open files and connections. Call it before starting any thread.
  ///
  /// Once a process has several threads, Linux pauses all of them each time the descriptor table grows (past 64, 128,
  /// 256 entries) until every processor has been idle or switched tasks, which takes 15 ms or more. With 64 connections
  /// this would happen in the middle of the start.
  package func makeRoomForDescriptors() {
    let last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 1023)
    // The call fails if the user's limit is lower or standard error is closed.
    if last >= 0 { close(last) }
  }
#else
  package func makeRoomForDescriptors() {}
#endif
