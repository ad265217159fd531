import Foundation
import Testing

/// A library that is loaded before the C library and makes one of its functions fail in a program under test.
///
/// It simulates faults that a test cannot create without being root: a name server that never responds, a full disk.
enum Shim {
  enum Fault {
    /// `getaddrinfo` never returns; it creates the file `mark` when it is called.
    case silentResolver(mark: String)
    /// This name has these numeric addresses, separated by blanks, in this order.
    case resolver(String, String)
    /// No file can grow beyond this number of bytes.
    case fullDisk(at: Int)
    /// Every file system claims to be FAT, like a card's.
    case onlyCards
    /// The clock of the program, but not that of the file system, is ahead by this number of seconds.
    case clockAhead(Int)
    /// The library adds a variable to the environment before the program begins.
    case largerEnvironment
  }

  /// The environment variables for the program. Throws if there is no C compiler; Swift's toolchain contains one.
  static func environment(_ fault: Fault, in scratch: Scratch) throws -> [String: String] {
    let library = try build(in: scratch)
    switch fault {
    case .silentResolver(let mark): return ["LD_PRELOAD": library, "SHIM_RESOLVER_MARK": mark]
    case .resolver(let name, let addresses):
      return ["LD_PRELOAD": library, "SHIM_RESOLVER_NAME": name, "SHIM_RESOLVER_ADDRESSES": addresses]
    case .onlyCards: return ["LD_PRELOAD": library, "SHIM_ONLY_CARDS": "1"]
    case .clockAhead(let seconds): return ["LD_PRELOAD": library, "SHIM_CLOCK_AHEAD": "\(seconds)"]
    case .largerEnvironment: return ["LD_PRELOAD": library, "SHIM_ADD_VARIABLE": "1"]
    case .fullDisk(let bytes): return ["LD_PRELOAD": library, "SHIM_DISK_BYTES": "\(bytes)"]
    }
  }

  private static func build(in scratch: Scratch) throws -> String {
    let source = scratch.path("shim.c")
    let library = scratch.path("shim.so")
    try code.write(toFile: source, atomically: true, encoding: .utf8)
    let swift = Tool.find("swift").map { URL(fileURLWithPath: $0).resolvingSymlinksInPath() }
    let beside = swift?.deletingLastPathComponent().appendingPathComponent("clang").path
    let compiler = try #require(
      [beside, Tool.find("clang"), Tool.find("cc")].compactMap { $0 }
        .first { FileManager.default.isExecutableFile(atPath: $0) }, "no C compiler")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: compiler)
    process.arguments = ["-shared", "-fPIC", "-o", library, source]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "\(compiler) does not build the shim")
    return library
  }

  private static let code = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <errno.h>
    #include <fcntl.h>
    #include <netdb.h>
    #include <stdarg.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/statfs.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>

    __attribute__((constructor)) static void begin(void) {
      if (getenv("SHIM_ADD_VARIABLE")) setenv("SHIM_ADDED_VARIABLE", "1", 1);
    }

    typedef int resolver(const char *, const char *, const struct addrinfo *, struct addrinfo **);

    // All addresses of the variable, in one list.
    static int look_up(resolver *real, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
      char *list = strdup(getenv("SHIM_RESOLVER_ADDRESSES")), *rest = NULL;
      *found = NULL;
      for (char *one = strtok_r(list, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        struct addrinfo *more = NULL, **end = found;
        if (real(one, service, hints, &more) != 0) continue;
        while (*end) end = &(*end)->ai_next;
        *end = more;
      }
      free(list);
      return *found ? 0 : EAI_NONAME;
    }

    int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
      const char *mark = getenv("SHIM_RESOLVER_MARK"), *known = getenv("SHIM_RESOLVER_NAME");
      if (!mark) {
        resolver *real = (resolver *)dlsym(RTLD_NEXT, "getaddrinfo");
        if (known && name && strcmp(known, name) == 0) return look_up(real, service, hints, found);
        return real(name, service, hints, found);
      }
      close(open(mark, O_CREAT | O_WRONLY, 0600));
      for (;;) pause();
    }

    int clock_gettime(clockid_t clock, struct timespec *now) {
      static int (*real)(clockid_t, struct timespec *);
      if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
      int result = real(clock, now);
      const char *ahead = getenv("SHIM_CLOCK_AHEAD");
      if (ahead && clock == CLOCK_REALTIME) now->tv_sec += atoll(ahead);
      return result;
    }

    static int as_card(int result, struct statfs *told) {
      if (result == 0 && getenv("SHIM_ONLY_CARDS")) told->f_type = 0x4D44;
      return result;
    }

    int fstatfs(int file, struct statfs *told) {
      int (*real)(int, struct statfs *) = dlsym(RTLD_NEXT, "fstatfs");
      return as_card(real(file, told), told);
    }

    int statfs(const char *path, struct statfs *told) {
      int (*real)(const char *, struct statfs *) = dlsym(RTLD_NEXT, "statfs");
      return as_card(real(path, told), told);
    }

    static int is_full(off64_t end) {
      const char *most = getenv("SHIM_DISK_BYTES");
      if (!most || end <= atoll(most)) return 0;
      errno = ENOSPC;
      return 1;
    }

    // Some calls are made by number.
    long syscall(long number, ...) {
      static long (*real)(long, ...);
      if (!real) real = dlsym(RTLD_NEXT, "syscall");
      va_list list;
      va_start(list, number);
      long given[6];
      for (int i = 0; i < 6; i++) given[i] = va_arg(list, long);
      va_end(list);
      off64_t *offset = number == SYS_splice ? (off64_t *)given[3] : NULL;
      if (offset && is_full(*offset + given[4])) return -1;
      return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    }

    ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
      if (is_full(offset + count)) return -1;
      return syscall(SYS_pwrite64, file, bytes, count, offset);
    }

    ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
      return pwrite64(file, bytes, count, offset);
    }

    """
}
