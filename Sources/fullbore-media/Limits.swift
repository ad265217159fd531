import Platform

/// Resource limits of the process, set before the first byte of a picture is read.
enum Limits {
  /// Maximum memory in bytes by our estimate; renderings that need more are refused. The enforced limit is `memory`.
  static let budget: Int64 = 400 << 20
  private static let memory: rlim_t = 640 << 20

  /// Makes the kernel refuse to write files, open more than 64 files or exceed the memory limit, and kill the process
  /// after ten minutes of CPU time. `Confinement` restricts which operations are allowed.
  static func set() {
    // A growing file then causes an error instead of a signal; libraries continue without the file.
    signal(SIGXFSZ, SIG_IGN)
    limit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), 0)
    limit(__rlimit_resource_t(RLIMIT_CORE.rawValue), 0)
    limit(__rlimit_resource_t(RLIMIT_CPU.rawValue), 600)
    limit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), 64)
    // Sanitizers reserve terabytes of address space before this code runs.
    if mapped() < memory { limit(__rlimit_resource_t(RLIMIT_DATA.rawValue), memory) }
    // Close descriptors that were inherited by mistake.
    closefrom(3)
  }

  /// Bytes of writable memory that are mapped.
  private static func mapped() -> rlim_t {
    guard let file = fopen("/proc/self/statm", "re") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, 256, file) != nil else { return 0 }
    let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let pages = text.split { $0 == " " || $0 == "\n" }.compactMap { rlim_t($0) }
    return pages.count > 5 ? pages[5] * rlim_t(sysconf(Int32(_SC_PAGESIZE))) : 0
  }

  private static func limit(_ what: __rlimit_resource_t, _ most: rlim_t) {
    var value = rlimit(rlim_cur: most, rlim_max: most)
    setrlimit(what, &value)
  }
}
