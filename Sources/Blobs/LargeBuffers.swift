#if canImport(Glibc)
  import CLinux

  /// A large buffer goes back to the system as soon as it is free. Call it before the first of them is allocated.
  ///
  /// By itself glibc keeps room of the size that it has seen freed once, in each of its arenas, and so for each thread.
  package func giveBackLargeBuffers() { _ = mallopt(M_MMAP_THRESHOLD, 128 << 10) }
#else
  /// Others do by themselves.
  package func giveBackLargeBuffers() {}
#endif
