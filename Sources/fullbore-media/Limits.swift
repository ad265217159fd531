import Platform

/// What the program may take of the machine, set before the first byte of a picture is looked at.
enum Limits {
  /// Bytes of memory that a rendering may need by our reckoning, and that it gets at most.
  static let budget: Int64 = 400 << 20
  private static let memory: rlim_t = 640 << 20

  /// The kernel refuses it every byte of a file, dozens of open files and memory beyond the limit, and ends it after ten
  /// minutes of work. What it may do at all is the matter of `Confinement`.
  static func set() {
    // A file that grows is an error then, and no signal: libraries that want one do without.
    signal(SIGXFSZ, SIG_IGN)
    limit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), 0)
    limit(__rlimit_resource_t(RLIMIT_CORE.rawValue), 0)
    limit(__rlimit_resource_t(RLIMIT_CPU.rawValue), 600)
    limit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), 64)
    // Sanitizers take terabytes of addresses before this begins.
    if mapped() < memory { limit(__rlimit_resource_t(RLIMIT_DATA.rawValue), memory) }
    // What was left open by mistake.
    closefrom(3)
  }

  /// Bytes of memory that could be written to.
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
