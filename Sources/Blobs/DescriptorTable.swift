import Platform

/// Raises the soft limit of open files towards the hard one, to 65,536 at most, and returns what the process may have now.
/// Systems set a low soft limit (256 on macOS, 1,024 on Linux) for programs that use `select`, which ours do not.
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
  /// Makes room for a thousand files and connections at once. Call it before there is another thread.
  ///
  /// Later, where there are threads, Linux has all of them wait each time that the table of open files grows (past 64, 128,
  /// 256 of them) until every processor has been seen idle or at another task, 15 ms and more: with 64 connections in the
  /// middle of the start.
  package func makeRoomForDescriptors() {
    let last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 1023)
    // There is none where the user may have fewer, or standard error is closed.
    if last >= 0 { close(last) }
  }
#else
  package func makeRoomForDescriptors() {}
#endif
