// This is the only file that imports the system's C library. It re-exports the library and, on Linux, wrappers for
// system calls that glibc lacks.
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
