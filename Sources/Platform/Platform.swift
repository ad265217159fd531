// The one place that imports the system's C library. Whoever imports this module sees it, and on Linux the calls that glibc
// does not wrap.
#if canImport(Glibc)
  @_exported import Glibc
#elseif canImport(Musl)
  @_exported import Musl
#else
  @_exported import Darwin
#endif
#if os(Linux)
  @_exported import CLinux
#endif
