#if canImport(Glibc)
  import Glibc

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
