import Blobs
import Platform

/// Identifies one process permanently: its pid alone may be reused.
package struct ProcessIdentity: Sendable, Hashable {
  /// The process id, which the system may use again after the end of the process.
  package var pid: Int32
  /// The kernel's id of this boot; empty if it cannot be read.
  package var boot: String
  /// When the process started, in the system's own units since boot. iOS does not tell it, so it is a random number there.
  package var start: UInt64

  /// Creates an identity of given values. `.current` is that of this process.
  package init(pid: Int32, boot: String, start: UInt64) {
    self.pid = pid
    self.boot = boot
    self.start = start
  }

  /// The mark of a process of this machine; nil if there is no process with this pid, or it has ended.
  package init?(of pid: Int32) {
    guard case .running(let start) = ProcessState(of: pid) else { return nil }
    self.init(pid: pid, boot: thisBoot, start: start)
  }

  /// This process.
  package static let current =
    ProcessIdentity(of: getpid())
    ?? ProcessIdentity(pid: getpid(), boot: thisBoot, start: .random(in: 1...UInt64(Int64.max)))

  /// The machine has not rebooted since.
  var isOfThisBoot: Bool { boot == thisBoot }

  /// False once the process has ended, even if it is still a zombie. If that is unknown, true.
  package var isAlive: Bool { isAlive(withOthers: true) }

  /// `withOthers`: other processes may have the same journal. If not, a process that the system does not show is one that
  /// was given the pid later.
  func isAlive(withOthers: Bool) -> Bool {
    isOfThisBoot && isAlive(ProcessState(of: pid), withOthers: withOthers)
  }

  func isAlive(_ state: ProcessState, withOthers: Bool) -> Bool {
    // Also where the system does not tell when this process started.
    if pid == Self.current.pid { return start == Self.current.start }
    return switch state {
    case .running(let start): start == self.start
    case .ended: false
    case .hidden: withOthers
    }
  }
}

extension BytePath {
  /// Whether processes of other apps and extensions may open the file: on iOS if it is in the container of an app group.
  var isShared: Bool {
    #if os(iOS)
      absolute().isInGroupContainer
    #else
      true
    #endif
  }

  /// `/private/var/mobile/Containers/Shared/AppGroup/…`.
  var isInGroupContainer: Bool {
    let folders = description.split(separator: "/")
    return zip(folders, folders.dropFirst()).contains { $0 == ("Shared", "AppGroup") }
  }
}

enum ProcessState {
  case running(start: UInt64)
  case ended
  /// The process exists, but the system does not show it to this one.
  case hidden
}

#if os(Linux)
  private let thisBoot =
    readSmallFile("/proc/sys/kernel/random/boot_id").map { String(decoding: $0.prefix { $0 > 32 }, as: UTF8.self) }
    ?? ""

  extension ProcessState {
    init(of pid: Int32) {
      guard let line = readSmallFile("/proc/\(pid)/stat") else {
        self = kill(pid, 0) == 0 || errno == EPERM ? .hidden : .ended
        return
      }
      // The second field is the program's name in parentheses, and may itself contain spaces and parentheses. proc(5)
      let fields = line[(line.lastIndex(of: UInt8(ascii: ")")) ?? 0)...].split(separator: UInt8(ascii: " "))
      guard fields.count > 20, let start = UInt64(String(decoding: fields[20], as: UTF8.self)) else {
        self = .hidden
        return
      }
      let letter = fields[1].first
      self = letter == UInt8(ascii: "Z") || letter == UInt8(ascii: "X") ? .ended : .running(start: start)
    }
  }

  private func readSmallFile(_ path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 1024)
    let count = read(descriptor, &buffer, buffer.count)
    return count > 0 ? Array(buffer.prefix(count)) : nil
  }
#else
  private let thisBoot: String = {
    var buffer = [CChar](repeating: 0, count: 64)
    var size = buffer.count
    if sysctlbyname("kern.bootsessionuuid", &buffer, &size, nil, 0) != 0 { return "" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }()

  extension ProcessState {
    init(of pid: Int32) {
      #if os(macOS)
        var info = proc_bsdinfo()
        let size = Int32(MemoryLayout<proc_bsdinfo>.size)
        if proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &info, size) == size {
          let start = info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec
          self = info.pbi_status == UInt32(SZOMB) ? .ended : .running(start: start)
          return
        }
      #endif
      // iOS shows no process, not even this one.
      self = kill(pid, 0) == 0 || errno == EPERM ? .hidden : .ended
    }
  }
#endif
