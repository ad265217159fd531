import Blobs
import Platform

/// A file system that a program implements (FUSE), such as rclone, davfs2 or sshfs. It may hold back what was changed in it, so
/// that a server does not see it yet.
struct RemoteMount: Sendable, Hashable {
  /// As the system names it, such as "fuse.rclone".
  let kind: String

  /// nil: the device is none, or the system does not tell. A disk of this machine whose file system is a program (NTFS, exFAT)
  /// is none. It blocks.
  init?(device: UInt64) {
    #if os(Linux)
      let descriptor = BytePath("/proc/self/mountinfo").open(O_RDONLY)
      if descriptor < 0 { return nil }
      defer { close(descriptor) }
      var text: [UInt8] = []
      var piece = [UInt8](repeating: 0, count: 64 << 10)
      while case let count = read(descriptor, &piece, piece.count), count > 0 { text += piece.prefix(count) }
      self.init(device: device, in: String(decoding: text, as: UTF8.self))
    #else
      return nil
    #endif
  }

  /// `mounts`: as proc_pid_mountinfo(5) describes it.
  init?(device: UInt64, in mounts: String) {
    // The numbers of a device as the C library joins them, in gnu_dev_makedev(3).
    let major = (device >> 8) & 0xFFF | (device >> 32) & 0xFFFF_F000
    let minor = device & 0xFF | (device >> 12) & 0xFFFF_FF00
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 2, fields[2] == "\(major):\(minor)", let dash = fields.firstIndex(of: "-"),
        dash + 1 < fields.count
      else { continue }
      let kind = fields[dash + 1]
      guard kind == "fuse" || kind.hasPrefix("fuse.") else { return nil }
      self.kind = String(kind)
      return
    }
    return nil
  }
}
