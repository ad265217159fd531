import Platform
import Synchronization

/// Properties of a file system that matter for recognizing a file after a restart.
package struct FileVolume: Sendable, Hashable {
  /// Whether a file's inode number and change time stay the same as long as the file does, also after a restart of the
  /// machine or after the disk was unplugged. False for FAT, network and FUSE file systems, which invent these numbers.
  package var keepsNumbers: Bool
  /// The file system's own id, which is the same on every machine; nil: only its device number identifies it.
  package var id: UInt64?
  /// Whether the kernel grants a read lease although the file is mapped for writing. True for overlayfs: it grants one
  /// once the file is closed and only the mapping remains.
  var hidesMappings = false

  /// Creates a description of a file system. `id` nil: the file system has no identifier of its own.
  package init(keepsNumbers: Bool, id: UInt64? = nil) {
    self.keepsNumbers = keepsNumbers
    self.id = id
  }

  /// The file system that contains `path`; nil if the system cannot report it. Blocks for the first file of a device.
  package init?(of path: BytePath, device: UInt64) {
    guard let volume = Self.known(device, { path.withCString { Self.ask(-1, $0) } }) else { return nil }
    self = volume
  }

  /// The file system that contains an open file.
  init?(of descriptor: Int32, device: UInt64) {
    guard let volume = Self.known(device, { Self.ask(descriptor, nil) }) else { return nil }
    self = volume
  }

  private static let seen = Mutex<[UInt64: (volume: FileVolume, since: ContinuousClock.Instant)]>([:])

  /// Cached entries expire after 10 seconds, because the device number of an unplugged disk is reused.
  private static func known(_ device: UInt64, _ ask: () -> FileVolume?) -> FileVolume? {
    let now = ContinuousClock.now
    let old = seen.withLock { $0[device] }
    if let old, now - old.since < .seconds(10) { return old.volume }
    // If the file has disappeared meanwhile, the query fails and nothing is cached for its device.
    guard let volume = ask() else { return nil }
    seen.withLock { seen in
      if seen.count > 1000 { seen = [:] }
      seen[device] = (volume, now)
    }
    return volume
  }

  #if os(Linux)
    private static func ask(_ descriptor: Int32, _ path: UnsafePointer<CChar>?) -> FileVolume? {
      var (kind, id): (UInt64, UInt64) = (0, 0)
      if fb_file_system(descriptor, path, &kind, &id) != 0 { return nil }
      return FileVolume(kind: kind, id: id)
    }

    /// `kind` is `f_type` of statfs(2). Unknown file systems are treated like removable media.
    init(kind: UInt64, id: UInt64) {
      switch kind {
      // ext2 to ext4, btrfs, ZFS: the id is stored on the disk.
      case 0xEF53, 0x9123_683E, 0x2FC1_2FC1: self.init(keepsNumbers: true, id: id == 0 ? nil : id)
      // XFS, F2FS, bcachefs, tmpfs, overlayfs: the id is derived from the device number or is 0.
      case 0x5846_5342, 0xF2F5_2010, 0xCA45_1A4E, 0x0102_1994, 0x794C_7630: self.init(keepsNumbers: true)
      default: self.init(keepsNumbers: false)
      }
      hidesMappings = kind == 0x794C_7630
    }
  #else
    private static func ask(_ descriptor: Int32, _ path: UnsafePointer<CChar>?) -> FileVolume? { nil }
  #endif
}
