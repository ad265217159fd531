#if os(Linux)
  import Platform

  /// A large buffer goes back to the system as soon as it is free, and what threads have freed is found by others. Call it
  /// before the first thread is started.
  ///
  /// By itself glibc keeps room of the size that it has seen freed once, in each of its arenas, of which it has eight for
  /// each processor: 64 connections over TLS leave 2 MiB more of it unused on two.
  package func giveBackMemory() {
    _ = mallopt(M_MMAP_THRESHOLD, 128 << 10)
    _ = mallopt(M_ARENA_MAX, Int32(clamping: 2 * max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
  }
#else
  /// Others do by themselves.
  package func giveBackMemory() {}
#endif
