import Blobs
import Platform

/// The name under which another program announces this machine to the network (mDNS, RFC 6762): `studio.local`.
enum MulticastName {
  /// nil: no name is announced, as far as this can be told. On Linux that is done by Avahi, whose process id is in a file.
  /// macOS always announces its local host name, which is the host name unless an administrator has set another one.
  static func announced(host: String? = ownHost(), avahi: BytePath = "/run/avahi-daemon/pid") -> String? {
    guard let host else { return nil }
    #if os(Linux)
      guard isRunning(avahi) else { return nil }
      // Avahi announces the first label.
      return host.prefix { $0 != "." } + ".local"
    #else
      return host.hasSuffix(".local") ? host : nil
    #endif
  }

  /// The host name of this machine; nil: it has none that could be a part of a URL.
  static func ownHost() -> String? {
    var room = [CChar](repeating: 0, count: 256)
    guard gethostname(&room, room.count - 1) == 0 else { return nil }
    let host = room.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    return !host.isEmpty && host.first != "." && host.utf8.allSatisfy(isPartOfName) ? host : nil
  }

  private static func isPartOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Whether the process runs whose id is in the file.
  private static func isRunning(_ file: BytePath) -> Bool {
    let descriptor = file.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
    if descriptor < 0 { return false }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = read(descriptor, &bytes, bytes.count)
    let digits = bytes.prefix(max(0, count)).prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
    guard let id = pid_t(String(decoding: digits, as: UTF8.self)), id > 0 else { return false }
    // A daemon of another user may not be signalled, and exists.
    return kill(id, 0) == 0 || errno == EPERM
  }
}
