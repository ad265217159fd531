import Blobs

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A process, told apart from a later one that was given the same number.
public struct ProcessMark: Sendable, Hashable {
  public var pid: Int32
  /// The kernel's number for this boot; empty where there is none.
  public var boot: String
  /// When it began, in the kernel's ticks since the boot.
  public var start: UInt64

  public init(pid: Int32, boot: String, start: UInt64) {
    self.pid = pid
    self.boot = boot
    self.start = start
  }

  public static let current = ProcessMark(pid: getpid(), boot: bootID, start: startTime(of: getpid()) ?? 0)

  /// Whether it still runs on this machine. A look at the system; quick.
  public var isAlive: Bool {
    boot == Self.bootID && kill(pid, 0) == 0 && Self.startTime(of: pid) == start
  }

  private static let bootID =
    contents(of: "/proc/sys/kernel/random/boot_id").map { String(decoding: $0.prefix(36), as: UTF8.self) } ?? ""

  /// The 22nd field of its `stat`; nil when it has ended. Counted after the name, which may itself hold spaces and
  /// brackets. proc(5).
  private static func startTime(of pid: Int32) -> UInt64? {
    guard let text = contents(of: "/proc/\(pid)/stat"), let end = text.lastIndex(of: UInt8(ascii: ")")) else {
      return nil
    }
    let fields = text[(end + 1)...].split(separator: UInt8(ascii: " "))
    // A zombie has ended; only its parent has not asked yet.
    if let state = fields.first?.first, state == UInt8(ascii: "Z") || state == UInt8(ascii: "X") { return nil }
    return fields.count > 19 ? UInt64(String(decoding: fields[19], as: UTF8.self)) : nil
  }

  /// The first 4 KiB of a file of the kernel's.
  private static func contents(of path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &bytes, bytes.count)
    return count > 0 ? Array(bytes.prefix(count)) : nil
  }
}
